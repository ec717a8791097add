#pragma once

#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>

namespace stretto::test {

//! Threads of this process now. A joined thread may stay listed for a moment, so a test that
//! expects a number waits for it with settle_to().
inline int thread_count() {
  // A sanitizer may start a thread of its own beside the first that is started.
  static const bool warm = (std::thread([] {}).join(), true);
  static_cast<void>(warm);
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

//! @return whether the process has no more than so many threads; looks again for some seconds. It
//! may have fewer: those that were counted before may have been joined already.
inline bool settle_to(int threads) {
  for (int turn = 0; turn < 5000; ++turn) {
    if (thread_count() <= threads) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace stretto::test
