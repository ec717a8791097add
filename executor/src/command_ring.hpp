#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>

#include "stretto/executor/device.hpp"
#include "wake_signal.hpp"

namespace stretto::executor {

//! What stands in a stream's queue.
struct alignas(64) queued {
  enum class kind : std::uint8_t { call, record, wait };

  command work{};  //!< of record and wait only the step counts
  std::int32_t event = -1;
  kind what = kind::call;
};

//! A bounded queue without locks between one thread that pushes and one that pops. Both sleep when
//! they must wait, and both give up when the flag `stop` is up and they are woken.
class command_ring {
 public:
  //! Entries in memory of a ring that holds `depth`.
  static std::uint32_t room_for(std::uint32_t depth) { return std::bit_ceil(depth); }

  //! Holds at most `depth` entries, at least one.
  command_ring(std::uint32_t depth, const std::atomic<bool>& stop)
      : depth_(depth),
        mask_(room_for(depth) - 1),
        entries_(std::make_unique<queued[]>(mask_ + 1)),
        stop_(stop) {}

  //! Whether push() would wait; from the thread that pushes.
  bool full() {
    const std::uint32_t at = tail_.load(std::memory_order_relaxed);
    if (at - head_seen_ == depth_) head_seen_ = head_.load(std::memory_order_acquire);
    return at - head_seen_ == depth_;
  }

  //! Waits until the limit, or until stopped, while the queue is full.
  //! @return whether it no longer is.
  bool wait_for_space(time_point limit) {
    const auto go_on = [this] { return !full() || stopped(); };
    return space_.wait_until(limit, go_on) && !full();
  }

  //! Waits while the queue is full. Drops the entry when stopped. The other thread, when it sleeps,
  //! is not woken before submit(): waking costs a system call.
  void push(const queued& entry) {
    const std::uint32_t at = tail_.load(std::memory_order_relaxed);
    if (at - head_seen_ == depth_) {
      const auto has_space = [this, at] {
        head_seen_ = head_.load(std::memory_order_acquire);
        return at - head_seen_ != depth_ || stopped();
      };
      space_.wait(0, has_space);
      if (at - head_seen_ == depth_) return;
    }
    entries_[at & mask_] = entry;
    tail_.store(at + 1, std::memory_order_release);
  }

  //! Wakes the thread that pops when there is anything new.
  void submit() {
    const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
    if (tail == submitted_) return;
    submitted_ = tail;
    filled_.notify();
  }

  //! The oldest entry, waited for; null when stopped.
  const queued* front(int spins) {
    const std::uint32_t at = head_.load(std::memory_order_relaxed);
    if (at == tail_seen_) {
      const auto has_entry = [this, at] {
        tail_seen_ = tail_.load(std::memory_order_acquire);
        return at != tail_seen_ || stopped();
      };
      filled_.wait(spins, has_entry);
    }
    return stopped() ? nullptr : &entries_[at & mask_];
  }

  //! Frees the place of the oldest entry.
  void pop() {
    head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    space_.notify();
  }

  //! Both sides look at the stop flag again.
  void wake() noexcept {
    filled_.notify();
    space_.notify();
  }

 private:
  bool stopped() const { return stop_.load(std::memory_order_acquire); }

  const std::uint32_t depth_;
  const std::uint32_t mask_;
  const std::unique_ptr<queued[]> entries_;
  const std::atomic<bool>& stop_;
  // Each thread's own words stand apart from the other's.
  alignas(64) std::atomic<std::uint32_t> tail_{0};
  std::uint32_t head_seen_ = 0;  // as the pusher last saw it
  std::uint32_t submitted_ = 0;
  wake_signal filled_;
  alignas(64) std::atomic<std::uint32_t> head_{0};
  std::uint32_t tail_seen_ = 0;  // as the popper last saw it
  wake_signal space_;
};

}  // namespace stretto::executor
