#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include "stretto/executor/bootstrap.hpp"
#include "stretto/executor/monitor.hpp"

namespace stretto::executor {

//! What is known of a process that has gone: NCCL alone does not always notice.
class lost_peers {
 public:
  explicit lost_peers(bootstrap& between) : between_(between) {}

  //! Empty: nothing, or it was looked for a moment ago.
  std::string text() noexcept {
    constexpr auto pause = std::chrono::milliseconds(20);
    const time_point now = std::chrono::steady_clock::now();
    if (now < looked_.load(std::memory_order_relaxed) + pause) return {};
    looked_.store(now, std::memory_order_relaxed);
    return between_.failure();
  }

 private:
  bootstrap& between_;
  std::atomic<time_point> looked_{time_point{}};
};

}  // namespace stretto::executor
