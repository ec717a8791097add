#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>

#include "stretto/executor/error.hpp"

namespace stretto::executor {

using time_point = std::chrono::steady_clock::time_point;

//! What all ranks of a process share during a step: whether it is to stop, who failed first, how
//! many ranks are done. Every member may be called from every thread.
class monitor {
 public:
  explicit monitor(int ranks);
  ~monitor();
  monitor(const monitor&) = delete;
  monitor& operator=(const monitor&) = delete;

  //! The first failure of the engine; later ones are consequences and are dropped.
  struct report {
    int rank = -1;
    std::int64_t ticket = -1;  //!< that of the command, see device.hpp
    std::exception_ptr cause{};
  };

  enum class outcome : std::uint8_t { ended, failed, late };

  //! @param deadline  of the step, for whoever waits in it
  void begin_step(time_point deadline = time_point::max()) noexcept;
  //! Of the step under way, as begin_step() was told.
  time_point deadline() const noexcept {
    return time_point(time_point::duration(deadline_.load(std::memory_order_relaxed)));
  }
  //! A rank's end_step is done.
  void rank_ended() noexcept;
  //! Waits until all ranks have ended, one has failed, or the time has come.
  outcome wait_until(time_point deadline) noexcept;

  //! Notes the failure, if it is the first, and asks everything to stop.
  void fail(int rank, std::int64_t ticket, std::exception_ptr cause) noexcept;
  //! Asks everything to stop without a failure of any rank. Who sleeps must be woken besides.
  void stop() noexcept;
  bool stopped() const noexcept { return stop_.load(std::memory_order_acquire); }
  const std::atomic<bool>& stop_flag() const noexcept { return stop_; }
  //! After `failed`: the failure.
  const report& first_failure() const noexcept { return report_; }

 private:
  struct sleeper;

  const int ranks_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> claimed_{false};
  std::atomic<bool> reported_{false};
  std::atomic<int> ended_{0};
  std::atomic<time_point::rep> deadline_{time_point::max().time_since_epoch().count()};
  report report_{};
  std::unique_ptr<sleeper> sleeper_;
};

}  // namespace stretto::executor
