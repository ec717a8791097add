#include "stretto/executor/agreement.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "differing_list.hpp"
#include "numbers.hpp"
#include "plan_ends.hpp"
#include "stretto/base/digest.hpp"
#include "stretto/base/version.hpp"

namespace stretto::executor {
namespace {

using channel = std::pair<int, int>;

//! What all processes together say of their plans.
struct claims {
  struct of_rank {
    std::size_t process = 0;
    int ranks = 0;
    std::uint64_t digest = 0;
  };
  struct of_member {
    int rank = 0;
    std::size_t members = 0;
    std::uint64_t hash = 0;
  };
  std::map<int, of_rank> ranks{};
  std::map<channel, std::map<int, std::uint64_t>> channels{};  // by the rank that says so
  std::map<int, std::vector<of_member>> groups{};
};

std::uint64_t hash_of(const message_list& list, bool sends) {
  digest sum;
  for (const message_end& each : list) {
    // Both sides count what the receiver gets.
    const job what = sends ? matching_receive(each.what) : each.what;
    sum.add(static_cast<std::uint64_t>(what.stage));
    sum.add(static_cast<std::uint64_t>(what.microbatch));
    sum.add(static_cast<std::uint64_t>(what.slice) * 64U + static_cast<std::uint64_t>(what.kind));
    sum.add(static_cast<std::uint64_t>(each.bytes));
  }
  return sum.value;
}

std::uint64_t hash_of(const group_part& part) {
  digest sum;
  for (const std::int32_t member : part.members) sum.add(static_cast<std::uint64_t>(member));
  sum.add(static_cast<std::uint64_t>(part.elements) * 2U + (part.wide ? 1U : 0U));
  sum.add(part.collectives.size());
  for (const collective_end& each : part.collectives) {
    sum.add(static_cast<std::uint64_t>(each.act));
    sum.add(static_cast<std::uint64_t>(each.gathered));
  }
  return sum.value;
}

//! What one process says: words, which claims_of reads.
std::string words_of(std::span<const plan_view> plans) {
  std::ostringstream words;
  for (const plan_view& plan : plans) {
    words << "rank " << plan.rank << ' ' << plan.ranks << ' ' << plan.digest << '\n';
    for (const action act : {action::send, action::receive})
      for (const auto& [name, list] : channels_of(plan, act))
        words << "channel " << name.first << ' ' << name.second << ' ' << plan.rank << ' '
              << hash_of(list, act == action::send) << '\n';
    for (const int group : groups_of(plan)) {
      const group_part part = group_of(plan, group);
      words << "group " << group << ' ' << plan.rank << ' ' << part.members.size() << ' '
            << hash_of(part) << '\n';
    }
  }
  return words.str();
}

claims claims_of(std::span<const std::string> of_processes) {
  claims all;
  for (std::size_t process = 0; process < of_processes.size(); ++process) {
    std::istringstream words(of_processes[process]);
    for (std::string what; words >> what;) {
      int rank = -1;
      if (what == "rank") {
        claims::of_rank said{process, 0, 0};
        words >> rank >> said.ranks >> said.digest;
        const auto [before, fresh] = all.ranks.try_emplace(rank, said);
        if (!fresh)
          throw plan_error("rank " + std::to_string(rank) + " has two plans, in process " +
                           std::to_string(before->second.process) + " and in process " +
                           std::to_string(process));
      } else if (what == "channel") {
        channel name;
        std::uint64_t hash = 0;
        words >> name.first >> name.second >> rank >> hash;
        all.channels[name][rank] = hash;
      } else {
        int group = -1;
        claims::of_member said;
        words >> group >> said.rank >> said.members >> said.hash;
        all.groups[group].push_back(said);
      }
    }
  }
  return all;
}

void must_be_complete(const claims& all) {
  const auto& [first, of_first] = *all.ranks.begin();
  for (const auto& [rank, said] : all.ranks)
    if (said.ranks != of_first.ranks)
      throw plan_error("rank " + std::to_string(rank) + " is planned for " +
                       std::to_string(said.ranks) + " ranks, rank " + std::to_string(first) +
                       " for " + std::to_string(of_first.ranks));
  for (int rank = 0; rank < of_first.ranks; ++rank)
    if (all.ranks.count(rank) == 0)
      throw plan_error("rank " + std::to_string(rank) + " is in no process");
}

//! The first rank whose digest is not that of the lowest; -1: there is none.
int differing_rank(const claims& all) {
  for (const auto& [rank, said] : all.ranks)
    if (said.digest != all.ranks.begin()->second.digest) return rank;
  return -1;
}
//! @param first  what they differ in, if that is known
[[noreturn]] void refuse_rank(const claims& all, int rank, const std::string& first) {
  const auto& [lowest, of_lowest] = *all.ranks.begin();
  throw plan_error("rank " + std::to_string(rank) + ", in process " +
                   std::to_string(all.ranks.at(rank).process) +
                   ", runs another schedule than rank " + std::to_string(lowest) + ", in process " +
                   std::to_string(of_lowest.process) + ": their digests differ" +
                   (first.empty() ? "" : "; first ") + first);
}

//! The first channel whose two ends differ.
std::optional<channel> differing_channel(const claims& all) {
  for (const auto& [name, ends] : all.channels)
    if (ends.size() != 2 || ends.begin()->second != ends.rbegin()->second) return name;
  return {};
}

std::optional<int> differing_group(const claims& all) {
  for (const auto& [group, members] : all.groups)
    for (const claims::of_member& each : members)
      if (each.hash != members.front().hash || each.members != members.size()) return group;
  return {};
}

[[noreturn]] void refuse_channel(std::span<const plan_view> plans, const channel& name,
                                 bootstrap& by, time_point limit) {
  numbers mine;
  for (const plan_view& plan : plans)
    for (const bool sends : {true, false}) {
      const channel_lists lists = channels_of(plan, sends ? action::send : action::receive);
      const auto found = lists.find(name);
      if (found == lists.end()) continue;
      mine << (sends ? 1 : 0) << static_cast<std::int64_t>(found->second.size());
      for (const message_end& each : found->second)
        mine << each.what.stage << each.what.microbatch << each.what.slice
             << static_cast<std::int64_t>(each.what.kind) << each.bytes << each.instruction;
    }
  message_list lists[2];
  for (const std::string& words : by.all_gather("channel that differs", mine.words(), limit))
    for (numbers from(words); from.more();) {
      message_list& list = lists[from.next<int>()];
      list.resize(from.next<std::size_t>());
      for (message_end& each : list) {
        each.what.stage = from.next<std::int32_t>();
        each.what.microbatch = from.next<std::int32_t>();
        each.what.slice = from.next<std::int16_t>();
        each.what.kind = from.next<job_kind>();
        each.bytes = from.next<std::int64_t>();
        each.instruction = from.next<int>();
      }
    }
  must_match(name, lists[1], lists[0]);
  throw plan_error("channel " + std::to_string(name.first) + " -> " + std::to_string(name.second) +
                   ": its two ends differ");
}

[[noreturn]] void refuse_group(std::span<const plan_view> plans, int group, bootstrap& by,
                               time_point limit) {
  numbers mine;
  for (const plan_view& plan : plans) {
    const group_part part = group_of(plan, group);
    mine << plan.rank << (part.exists ? 1 : 0) << part.elements << (part.wide ? 1 : 0)
         << static_cast<std::int64_t>(part.collectives.size())
         << static_cast<std::int64_t>(part.members.size());
    for (const std::int32_t member : part.members) mine << member;
    for (const collective_end& each : part.collectives)
      mine << static_cast<std::int64_t>(each.act) << each.gathered;
  }
  std::map<int, group_part> parts;
  for (const std::string& words : by.all_gather("group that differs", mine.words(), limit))
    for (numbers from(words); from.more();) {
      group_part& part = parts[from.next<int>()];
      part.exists = from.next<int>() != 0;
      part.elements = from.next<std::int64_t>();
      part.wide = from.next<int>() != 0;
      part.collectives.resize(from.next<std::size_t>());
      part.members.resize(from.next<std::size_t>());
      for (std::int32_t& member : part.members) member = from.next<std::int32_t>();
      for (collective_end& each : part.collectives) {
        each.act = from.next<action>();
        each.gathered = from.next<std::int64_t>();
      }
    }
  for (const auto& [rank, part] : parts)
    if (!part.collectives.empty())
      for (const std::int32_t member : part.members)
        must_match(group, rank, part, member, parts[member]);
  throw plan_error("group " + std::to_string(group) + ": its members differ");
}

void agree_on_versions(std::span<const component> components, bootstrap& by, time_point limit) {
  std::string mine = "stretto " + std::string(version) + '\n';
  for (const component& each : components) mine += each.name + ' ' + each.version + '\n';
  const std::vector<std::string> all = by.all_gather("versions", mine, limit);
  for (std::size_t process = 1; process < all.size(); ++process) {
    if (all[process] == all[0]) continue;
    std::istringstream first(all[0]);
    std::istringstream other(all[process]);
    std::string left;
    std::string right;
    do {
      if (!std::getline(first, left)) left = "nothing";
      if (!std::getline(other, right)) right = "nothing";
    } while (left == right);
    throw plan_error("process " + std::to_string(process) + " has " + right + ", process 0 has " +
                     left);
  }
}

}  // namespace

void agree(std::span<const plan_view> plans, std::span<const component> components, bootstrap& by,
           time_point limit) {
  agree_on_versions(components, by, limit);
  const claims all = claims_of(by.all_gather("plans", words_of(plans), limit));
  if (all.ranks.empty()) throw plan_error("no process has a plan");
  must_be_complete(all);
  const int other = differing_rank(all);
  if (other >= 0) {
    const auto holder = [&](int rank) {
      return list_holder{rank, static_cast<int>(all.ranks.at(rank).process)};
    };
    const job_rows lists = plans.empty() ? job_rows{} : plans.front().lists;
    const std::string first =
        first_difference(lists, holder(all.ranks.begin()->first), holder(other), by, limit);
    if (!first.empty()) refuse_rank(all, other, first);
  }
  const std::optional<channel> name = differing_channel(all);
  const std::optional<int> group = differing_group(all);
  try {
    if (name) refuse_channel(plans, *name, by, limit);
    if (group) refuse_group(plans, *group, by, limit);
  } catch (const plan_error& found) {
    if (other >= 0) refuse_rank(all, other, std::string("in ") + found.what());
    throw;
  }
  if (other >= 0) refuse_rank(all, other, {});
}

}  // namespace stretto::executor
