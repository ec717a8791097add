#pragma once

#include <cstdint>

namespace stretto::lowering {

//! Storage for one global order: the ranks in the order in which they issue their compute nodes (a
//! pair is one node). Together with the lists it is the proof that no rank can block another: the
//! messages of a node follow it at once, send and receive adjacent. Where a receive lead keeps a
//! message back, an entry of its own says when it comes: `late` of the receiving rank.
struct order_sink {
  std::int32_t* ranks = nullptr;
  std::int64_t count = 0;
  bool has_late = false;

  static constexpr std::int32_t late(int receiver) { return ~receiver; }
};

//! Entries of the order of so many compute jobs, at most.
constexpr std::int64_t order_room(std::int64_t compute_jobs, int receive_lead) {
  return receive_lead < 0 ? compute_jobs : 2 * compute_jobs;
}

//! The same, read only.
struct order_view {
  const std::int32_t* ranks = nullptr;
  std::int64_t count = 0;
  bool has_late = false;

  constexpr order_view() = default;
  constexpr order_view(const std::int32_t* ranks_, std::int64_t count_, bool has_late_ = false)
      : ranks(ranks_), count(count_), has_late(has_late_) {}
  constexpr order_view(const order_sink& written)
      : ranks(written.ranks), count(written.count), has_late(written.has_late) {}
};

}  // namespace stretto::lowering
