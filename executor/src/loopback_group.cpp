#include "loopback_group.hpp"

#include <algorithm>
#include <cstring>
#include <string>

namespace stretto::executor {

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
  sum(what, step, number, sum_to::all);
}

void loopback_group::reduce_scatter(const operation& what, std::int64_t step,
                                    std::int64_t number) {
  sum(what, step, number, sum_to::each_its_part);
}

void loopback_group::sum(const operation& what, std::int64_t step, std::int64_t number,
                         sum_to whom) {
  must_hold(index_, head_of(what, step),
            elements_ * static_cast<std::int64_t>(wide_ ? sizeof(double) : sizeof(float)));
  together(what, step, number, [&](std::size_t part) {
    wide_ ? sum_part<double>(part, whom) : sum_part<float>(part, whom);
  });
}

void loopback_group::all_gather(const operation& what, std::int64_t step, std::int64_t number) {
  together(what, step, number, [&](std::size_t part) {
    const auto bytes = static_cast<std::size_t>(what.bytes / count_);
    const std::byte* const own = what.data + part * bytes;
    for (std::size_t other = 0; other < static_cast<std::size_t>(count_); ++other)
      if (other != part && bytes > 0)
        std::memcpy(members_[other].what->data + part * bytes, own, bytes);
  });
}

template <class Part>
void loopback_group::together(const operation& what, std::int64_t step, std::int64_t number,
                              const Part& part) {
  const std::size_t place = position_of(what.rank);
  member& mine = members_[place];
  const auto my_turn = [&] {
    return mine.done.load(std::memory_order_acquire) == number || stopped();
  };
  changed_.wait(spins_, my_turn);
  if (stopped()) return;
  const message_head head = head_of(what, step);
  mine.what = &what;
  mine.head = head;
  gather(arrived_, number);
  if (stopped()) return;
  must_meet(index_, members_[0].head, head);
  part(place);
  // No member may go on, and change its buffer, before all parts are done.
  gather(done_, number);
  mine.done.store(number + 1, std::memory_order_release);
  changed_.notify();
}

template <class Element>
void loopback_group::sum_part(std::size_t part, sum_to whom) const {
  constexpr std::int64_t block = 1024 / static_cast<std::int64_t>(sizeof(Element));
  const auto count = static_cast<std::size_t>(count_);
  const auto elements_of = [this](std::size_t at) {
    return reinterpret_cast<Element*>(members_[at].what->data);
  };
  const std::int64_t end = part_begin<Element>(whom, part + 1, count, elements_);
  for (std::int64_t at = part_begin<Element>(whom, part, count, elements_); at < end; at += block) {
    const std::int64_t length = std::min(block, end - at);
    Element sum[block];
    ordered_sum(
        count, [&](std::size_t of) -> const Element* { return elements_of(of) + at; }, length, sum);
    for (std::size_t other = 0; other < count; ++other)
      if (whom == sum_to::all || other == part) std::copy_n(sum, length, elements_of(other) + at);
  }
}

}  // namespace stretto::executor
