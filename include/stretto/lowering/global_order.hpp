#pragma once

#include <cstdint>

#include "stretto/base/digest.hpp"
#include "stretto/model/job.hpp"

namespace stretto::lowering {

//! Storage for one global order: the ranks in the order in which they issue their compute nodes (a
//! pair is one node). Together with the lists it is the proof that no rank can block another: the
//! messages of a node follow it at once, send and receive adjacent. Where a receive lead keeps a
//! message back, an entry of its own says when it comes: `late` of the receiving rank.
struct order_sink {
  std::int32_t* ranks = nullptr;
  std::int64_t count = 0;
  bool has_late = false;
  digest jobs{};  //!< all of them, in this order, and what is late

  static constexpr std::int32_t late(int receiver) { return ~receiver; }

  //! The next node is the rank's, and is, or begins with, `first`.
  constexpr void add_node(std::int32_t rank, const job& first) {
    ranks[count++] = rank;
    add_job(rank, first);
  }
  //! The node's other job.
  constexpr void add_job(std::int32_t rank, const job& work) {
    // Micro-batches take fewer than 28 bits, stages 16; ranks are spread over all.
    jobs.add(std::uint64_t{0x9e3779b97f4a7c15} * static_cast<std::uint32_t>(rank) +
             static_cast<std::uint64_t>(work.kind) + (work.paired ? 64u : 0u) +
             (std::uint64_t{static_cast<std::uint32_t>(work.microbatch)} << 8u) +
             (std::uint64_t{static_cast<std::uint32_t>(work.stage)} << 36u) +
             (std::uint64_t{static_cast<std::uint16_t>(work.slice)} << 52u));
  }
  //! A message that was kept back comes to `receiver`.
  constexpr void add_late(std::int32_t receiver) {
    ranks[count++] = late(receiver);
    has_late = true;
    jobs.add(~std::uint64_t{static_cast<std::uint32_t>(receiver)});
  }
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
