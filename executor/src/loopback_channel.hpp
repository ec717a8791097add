#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "message_head.hpp"
#include "stretto/executor/transport.hpp"
#include "wake_signal.hpp"

namespace stretto::executor {

//! One directed pair of ranks. Messages are numbered in the order of their enqueuing on each side;
//! each side handles its own in that order, from whatever streams.
class loopback_channel {
 public:
  //! @param capacity as make_loopback_transport has it
  //! @param largest bytes of the largest message
  loopback_channel(int from, int to, int capacity, std::int64_t largest, int spins,
                   const std::atomic<bool>& stop);

  //! The number of the next message; called from the issuing thread of the side's rank.
  std::int64_t next_send() { return next_send_++; }
  std::int64_t next_receive() { return next_receive_++; }

  //! The operations themselves, on a stream. Both return early when stopped.
  //! @throws transport_error when the two do not fit.
  void send(const operation& what, std::int64_t step, std::int64_t number);
  void receive(const operation& what, std::int64_t step, std::int64_t number);

  void wake() noexcept { changed_.notify(); }

 private:
  struct slot {
    message_head head{};
    const std::byte* data = nullptr;
    std::unique_ptr<std::byte[]> own{};  // in buffered mode
  };

  bool stopped() const { return stop_.load(std::memory_order_acquire); }
  slot& slot_of(std::int64_t number) {
    return slots_[static_cast<std::size_t>(number) % slots_.size()];
  }

  const int from_;
  const int to_;
  const bool buffered_;
  const std::int64_t largest_;
  const int spins_;
  const std::atomic<bool>& stop_;
  std::vector<slot> slots_;
  std::int64_t next_send_ = 0;
  std::int64_t next_receive_ = 0;
  std::atomic<std::int64_t> posted_{0};  // messages handed over
  std::atomic<std::int64_t> taken_{0};   // messages received
  wake_signal changed_;
};

}  // namespace stretto::executor
