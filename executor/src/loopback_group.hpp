#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "message_head.hpp"
#include "ordered_sum.hpp"
#include "stretto/executor/transport.hpp"
#include "wake_signal.hpp"

namespace stretto::executor {

//! The collectives of one group. In an all-reduce each member sums one part of the elements over
//! all members' buffers and writes it to all of them, so that no further memory is needed and every
//! member gets the same bits, whoever comes first; in an all-gather it writes what is its own to
//! all.
class loopback_group {
 public:
  //! @param ranks the members, in any order
  loopback_group(int index, std::vector<int> ranks, std::int64_t elements, bool wide, int spins,
                 const std::atomic<bool>& stop);

  //! The number of the rank's next collective; called from its issuing thread.
  std::int64_t next(int rank) { return members_[position_of(rank)].issued++; }

  //! Returns early when stopped.
  //! @throws transport_error when the members' operations do not fit.
  void all_reduce(const operation& what, std::int64_t step, std::int64_t number);
  //! The same.
  void all_gather(const operation& what, std::int64_t step, std::int64_t number);
  void reduce_scatter(const operation& what, std::int64_t step, std::int64_t number);

  void wake() noexcept { changed_.notify(); }

 private:
  struct alignas(64) member {
    int rank = 0;
    std::int64_t issued = 0;
    message_head head{};
    const operation* what = nullptr;
    std::atomic<std::int64_t> done{0};
  };

  bool stopped() const { return stop_.load(std::memory_order_acquire); }
  std::size_t position_of(int rank) const;
  //! Does `part(k)`, of this member's place k, when all members have come, and waits until all are
  //! done.
  template <class Part>
  void together(const operation& what, std::int64_t step, std::int64_t number, const Part& part);
  //! Counts this member in and waits for the others of the same round.
  void gather(std::atomic<std::int64_t>& counter, std::int64_t number);
  template <class Element>
  void sum_part(std::size_t part, sum_to whom) const;
  void sum(const operation& what, std::int64_t step, std::int64_t number, sum_to whom);

  const int index_;
  const std::int64_t elements_;
  const bool wide_;
  const int spins_;
  const std::atomic<bool>& stop_;
  const std::int64_t count_;
  std::unique_ptr<member[]> members_;  // in the order of their ranks
  std::atomic<std::int64_t> arrived_{0};
  std::atomic<std::int64_t> done_{0};
  wake_signal changed_;
};

}  // namespace stretto::executor
