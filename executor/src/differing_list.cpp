#include "differing_list.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "numbers.hpp"
#include "stretto/base/digest.hpp"
#include "stretto/executor/describe.hpp"

namespace stretto::executor {
namespace {

using entry_span = std::span<const job>;

constexpr std::size_t block_entries = 512;  // entries that are hashed as one

bool is_known(const job_rows& lists) {
  return lists.items != nullptr;
}

//! What a rank computes and copies, or, if that is alike, all that it does.
std::vector<job> entries_of(const job_rows& lists, int rank, bool messages) {
  std::vector<job> all;
  for (const job& each : lists.row(rank))
    if (messages || has_cost(each.kind)) all.push_back(each);
  return all;
}
//! What is different, by the schedules of two ranks.
struct two_holders {
  int one = 0;
  int other = 0;

  std::string text(const std::string& mine, const std::string& theirs) const {
    return mine + " by the schedule of rank " + std::to_string(one) + ", " + theirs +
           " by that of rank " + std::to_string(other);
  }
};
std::string difference_text(const two_holders& of, int rank, bool messages, std::size_t number,
                            entry_span mine, entry_span theirs, std::size_t at) {
  const auto text = [&](entry_span list) {
    return at < list.size() ? describe(list[at]) : "nothing more";
  };
  return "in the list of rank " + std::to_string(rank) + (messages ? ", entry " : ", job ") +
         std::to_string(number) + ": " + of.text(text(mine), text(theirs));
}
std::string ranks_text(const two_holders& of, int mine, int theirs) {
  return "in their ranks: " + of.text(std::to_string(mine), std::to_string(theirs));
}
template <class List>
std::size_t parting(const List& mine, const List& theirs) {
  return static_cast<std::size_t>(std::ranges::mismatch(mine, theirs).in1 - mine.begin());
}

std::uint64_t hash_of(entry_span list) {
  digest sum;
  for (const job& each : list) {
    sum.add(static_cast<std::uint64_t>(each.stage));
    sum.add(static_cast<std::uint64_t>(each.microbatch));
    sum.add(
        (static_cast<std::uint64_t>(each.slice) * 256U + static_cast<std::uint64_t>(each.kind)) *
            2U +
        (each.paired ? 1U : 0U));
  }
  return sum.value;
}
entry_span block_of(entry_span list, std::size_t number) {
  const std::size_t first = std::min(number * block_entries, list.size());
  return list.subspan(first, std::min(block_entries, list.size() - first));
}

//! What one process says of something.
using told_numbers = std::vector<std::int64_t>;
told_numbers numbers_in(const std::string& words) {
  told_numbers all;
  for (numbers from(words); from.more();) all.push_back(from.next<std::int64_t>());
  return all;
}

std::vector<job> jobs_in(const told_numbers& words) {
  std::vector<job> all(words.size() / 5);
  for (std::size_t each = 0; each < all.size(); ++each) {
    const std::int64_t* const from = words.data() + each * 5;
    all[each] = {static_cast<std::int32_t>(from[0]), static_cast<std::int32_t>(from[1]),
                 static_cast<std::int16_t>(from[2]), static_cast<job_kind>(from[3]), from[4] != 0};
  }
  return all;
}

}  // namespace

std::string first_difference(const job_rows& mine, int rank_of_one, const job_rows& theirs,
                             int rank_of_other) {
  const two_holders of{rank_of_one, rank_of_other};
  if (!is_known(mine) || !is_known(theirs)) return {};
  if (mine.ranks != theirs.ranks) return ranks_text(of, mine.ranks, theirs.ranks);
  for (const bool messages : {false, true})
    for (int rank = 0; rank < mine.ranks; ++rank) {
      const std::vector<job> here = entries_of(mine, rank, messages);
      const std::vector<job> there = entries_of(theirs, rank, messages);
      if (here == there) continue;
      const std::size_t at = parting(here, there);
      return difference_text(of, rank, messages, at, here, there, at);
    }
  return {};
}

std::string first_difference(const job_rows& mine, const list_holder& one, const list_holder& other,
                             bootstrap& by, time_point limit) {
  const two_holders of{one.rank, other.rank};
  const bool tells =
      is_known(mine) && (by.process() == one.process || by.process() == other.process);
  told_numbers here;
  told_numbers there;
  // What both say of it, after which all know where they part.
  const auto exchange = [&](const char* what, const auto& tell) {
    numbers told;
    if (tells) tell(told);
    const std::vector<std::string> all = by.all_gather(what, told.words(), limit);
    here = numbers_in(all[static_cast<std::size_t>(one.process)]);
    there = numbers_in(all[static_cast<std::size_t>(other.process)]);
    return parting(here, there);
  };
  const std::size_t first = exchange("lists that differ", [&](numbers& told) {
    for (const bool messages : {false, true})
      for (int rank = 0; rank < mine.ranks; ++rank)
        told << static_cast<std::int64_t>(hash_of(entries_of(mine, rank, messages)));
  });
  if (here.empty() || there.empty()) return {};
  const std::size_t ranks = here.size() / 2;
  if (here.size() != there.size())
    return ranks_text(of, static_cast<int>(ranks), static_cast<int>(there.size() / 2));
  if (first == here.size()) return {};
  const int rank = static_cast<int>(first % ranks);
  const bool messages = first >= ranks;
  const std::vector<job> list = tells ? entries_of(mine, rank, messages) : std::vector<job>();
  const std::size_t number = exchange("list that differs", [&](numbers& told) {
    for (std::size_t each = 0; each * block_entries < list.size(); ++each)
      told << static_cast<std::int64_t>(hash_of(block_of(list, each)));
  });
  exchange("entries that differ", [&](numbers& told) {
    for (const job& each : block_of(list, number))
      told << each.stage << each.microbatch << each.slice << static_cast<std::int64_t>(each.kind)
           << (each.paired ? 1 : 0);
  });
  const std::vector<job> ours = jobs_in(here);
  const std::vector<job> theirs = jobs_in(there);
  const std::size_t at = parting(ours, theirs);
  return difference_text(of, rank, messages, number * block_entries + at, ours, theirs, at);
}

}  // namespace stretto::executor
