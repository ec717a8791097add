#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "command_ring.hpp"
#include "stretto/executor/device.hpp"
#include "stretto/executor/monitor.hpp"
#include "wake_signal.hpp"

namespace stretto::executor {

//! Counts the steps in which it was recorded.
class alignas(64) host_event {
 public:
  void record(std::int64_t step) noexcept {
    recorded_.store(step, std::memory_order_release);
    changed_.notify();
  }
  //! @return false when stopped instead.
  bool wait(std::int64_t step, int spins, const std::atomic<bool>& stop) noexcept {
    const auto reached = [&] {
      return recorded_.load(std::memory_order_acquire) >= step ||
             stop.load(std::memory_order_acquire);
    };
    changed_.wait(spins, reached);
    return !stop.load(std::memory_order_acquire);
  }
  void wake() noexcept { changed_.notify(); }

 private:
  std::atomic<std::int64_t> recorded_{-1};
  wake_signal changed_;
};

//! A stream of the host: one thread that runs its queue in order.
class host_stream {
 public:
  struct place {
    int rank = 0;
    int priority = 0;
    std::string name{};
    int spins = 0;
    std::uint32_t depth = 1;
  };

  host_stream(const place& where, host_event* events, monitor& watch);
  //! Only after a join that succeeded or with the monitor stopped and the stream woken.
  ~host_stream();

  bool full() { return ring_.full(); }
  bool wait_for_space(time_point limit) { return ring_.wait_for_space(limit); }
  void push(const queued& entry) { ring_.push(entry); }
  void submit() { ring_.submit(); }
  progress done() const {
    return {started_.load(std::memory_order_acquire), finished_.load(std::memory_order_acquire)};
  }
  int priority() const { return where_.priority; }
  const std::string& name() const { return where_.name; }
  void wake() noexcept { ring_.wake(); }
  //! @return whether the thread has ended.
  bool join_until(time_point limit) noexcept;

 private:
  void run() noexcept;
  //! @return false when the stream is to run nothing more.
  bool execute(const queued& entry) noexcept;
  bool call(const command& work) noexcept;

  place where_;
  host_event* events_;
  monitor& watch_;
  command_ring ring_;
  std::atomic<std::int64_t> started_{-1};
  std::atomic<std::int64_t> finished_{-1};
  std::atomic<bool> over_{false};
  wake_signal ended_;
  std::string thread_name_;
  std::thread thread_;
};

}  // namespace stretto::executor
