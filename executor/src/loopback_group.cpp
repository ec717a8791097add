#include "loopback_group.hpp"

#include <algorithm>
#include <string>

#include "stretto/model/job_text.hpp"

namespace stretto::executor {
namespace {

std::string text_of(const operation& what, std::int64_t step) {
  return std::string(to_text(what.what).view()) + " (rank " + std::to_string(what.rank) +
         ", instruction " + std::to_string(what.instruction) + ", step " + std::to_string(step) +
         ")";
}

}  // namespace

loopback_group::loopback_group(int index, std::vector<int> ranks, std::int64_t elements, bool wide,
                               int spins, const std::atomic<bool>& stop)
    : index_(index),
      elements_(elements),
      wide_(wide),
      spins_(spins),
      stop_(stop),
      count_(static_cast<std::int64_t>(ranks.size())),
      members_(std::make_unique<member[]>(ranks.size())) {
  std::sort(ranks.begin(), ranks.end());
  for (std::size_t at = 0; at < ranks.size(); ++at) members_[at].rank = ranks[at];
}

std::size_t loopback_group::position_of(int rank) const {
  const auto count = static_cast<std::size_t>(count_);
  for (std::size_t at = 0; at < count; ++at)
    if (members_[at].rank == rank) return at;
  throw transport_error("group " + std::to_string(index_) + ": rank " + std::to_string(rank) +
                        " is no member");
}

void loopback_group::gather(std::atomic<std::int64_t>& counter, std::int64_t number) {
  const std::int64_t full = (number + 1) * count_;
  if (counter.fetch_add(1, std::memory_order_acq_rel) + 1 == full) {
    changed_.notify();
    return;
  }
  const auto complete = [&] {
    return counter.load(std::memory_order_acquire) >= full || stopped();
  };
  changed_.wait(spins_, complete);
}

void loopback_group::all_reduce(const operation& what, std::int64_t step, std::int64_t number) {
  const std::size_t part = position_of(what.rank);
  member& mine = members_[part];
  const auto my_turn = [&] {
    return mine.done.load(std::memory_order_acquire) == number || stopped();
  };
  changed_.wait(spins_, my_turn);
  if (stopped()) return;
  const std::int64_t needed =
      elements_ * static_cast<std::int64_t>(wide_ ? sizeof(double) : sizeof(float));
  if (what.bytes < needed)
    throw transport_error(
        "group " + std::to_string(index_) + ": sizes differ: " + text_of(what, step) + " holds " +
        std::to_string(what.bytes) + " bytes, the group sums " + std::to_string(needed));
  mine.what = &what;
  mine.step = step;
  gather(arrived_, number);
  if (stopped()) return;
  compare(mine);
  wide_ ? sum_part<double>(part) : sum_part<float>(part);
  // No member may go on, and change its buffer, before all parts are summed.
  gather(summed_, number);
  mine.done.store(number + 1, std::memory_order_release);
  changed_.notify();
}

void loopback_group::compare(const member& mine) const {
  const member& first = members_[0];
  if (mine.step == first.step && mine.what->what.microbatch == first.what->what.microbatch) return;
  throw transport_error("group " + std::to_string(index_) +
                        ": collectives differ: " + text_of(*first.what, first.step) + " meets " +
                        text_of(*mine.what, mine.step));
}

template <class Element>
void loopback_group::sum_part(std::size_t part) const {
  constexpr std::int64_t line = 64 / static_cast<std::int64_t>(sizeof(Element));
  constexpr std::int64_t block = 16 * line;
  const auto count = static_cast<std::size_t>(count_);
  const auto elements_of = [this](std::size_t at) {
    return reinterpret_cast<Element*>(members_[at].what->data);
  };
  // Parts are whole cache lines, so that members do not write to one another's.
  const std::int64_t lines = (elements_ + line - 1) / line;
  const auto border = [&](std::size_t at) {
    return std::min(elements_, lines * static_cast<std::int64_t>(at) / count_ * line);
  };
  const std::int64_t end = border(part + 1);
  for (std::int64_t at = border(part); at < end; at += block) {
    const std::int64_t length = std::min(block, end - at);
    Element sum[block];
    std::copy_n(elements_of(0) + at, length, sum);
    for (std::size_t other = 1; other < count; ++other) {
      const Element* theirs = elements_of(other) + at;
      for (std::int64_t each = 0; each < length; ++each) sum[each] += theirs[each];
    }
    for (std::size_t other = 0; other < count; ++other)
      std::copy_n(sum, length, elements_of(other) + at);
  }
}

}  // namespace stretto::executor
