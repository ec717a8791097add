#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <string_view>

#include "stretto/executor/bootstrap.hpp"
#include "stretto/executor/monitor.hpp"

namespace stretto::executor {

//! What is known of a process that has gone: neither NCCL nor MPI always notices. Asked by whatever
//! thread waits.
class lost_peers {
 public:
  explicit lost_peers(bootstrap& between) : between_(between) {}

  //! Empty: nothing, or it was looked for a moment ago.
  std::string text() noexcept {
    constexpr auto pause = std::chrono::milliseconds(20);
    const time_point now = std::chrono::steady_clock::now();
    if (now < looked_.load(std::memory_order_relaxed) + pause) return {};
    looked_.store(now, std::memory_order_relaxed);
    const std::lock_guard lock(calling_);
    return gone_ ? std::string() : between_.failure();
  }
  //! This one has failed, too, unless the others know of a failure: then it has nothing to add.
  void tell(std::string_view why) noexcept {
    const std::lock_guard lock(calling_);
    if (gone_ || !between_.failure().empty()) return;
    gone_ = true;
    between_.abandon(why);
  }

 private:
  bootstrap& between_;
  std::mutex calling_;
  bool gone_ = false;
  std::atomic<time_point> looked_{time_point{}};
};

}  // namespace stretto::executor
