#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "stretto/executor/monitor.hpp"
#include "stretto/executor/runner.hpp"
#include "wake_signal.hpp"

namespace stretto::executor {

//! One thread for each rank, which issues the rank's plan whenever a step begins.
class issuers {
 public:
  issuers(std::span<const std::unique_ptr<runner>> ranks, monitor& watch);
  //! With the monitor stopped.
  ~issuers();

  void begin(std::int64_t step) noexcept;
  void wake() noexcept { changed_.notify(); }
  //! @return the number of threads still held by a call that has not returned.
  int join(time_point limit) noexcept;

 private:
  void run(runner& rank) noexcept;

  monitor& watch_;
  std::atomic<std::int64_t> begun_{0};  // steps
  wake_signal changed_;
  std::atomic<int> running_{0};
  wake_signal ended_;
  std::vector<std::thread> threads_;
};

}  // namespace stretto::executor
