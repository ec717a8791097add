#include "wake_signal.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>
#endif

namespace stretto::executor {

int spins_for(int threads) {
  const unsigned cores = std::thread::hardware_concurrency();
  return static_cast<unsigned>(threads) > cores ? 20 : 100;
}

#if defined(__linux__)

static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));

void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, const time_point* limit) {
  // steady_clock is CLOCK_MONOTONIC here, but a relative time needs no such knowledge.
  timespec rest{};
  if (limit != nullptr) {
    const auto left = std::max(*limit - std::chrono::steady_clock::now(), time_point::duration{});
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
    rest.tv_sec = static_cast<std::time_t>(seconds.count());
    rest.tv_nsec = static_cast<long>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(left - seconds).count());
  }
  // Every way to return (woken, changed, timed out, interrupted) sends the caller to look again.
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, seen, limit != nullptr ? &rest : nullptr, nullptr,
          0);
}

void wake_all(std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

#else

void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, const time_point* limit) {
  // std::atomic cannot wait for a limited time; only the thread that calls step() has a limit.
  if (limit == nullptr)
    word.wait(seen, std::memory_order_seq_cst);
  else
    std::this_thread::sleep_for(std::chrono::microseconds(100));
}

void wake_all(std::atomic<std::uint32_t>& word) noexcept {
  word.notify_all();
}

#endif

}  // namespace stretto::executor
