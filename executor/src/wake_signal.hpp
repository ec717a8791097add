#pragma once

#include <atomic>
#include <cstdint>

#include "stretto/executor/monitor.hpp"

namespace stretto::executor {

//! Sleeps until *word differs from `seen`, is woken, or the limit (may be null) has come. May
//! return early.
void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen, const time_point* limit);
void wake_all(std::atomic<std::uint32_t>& word) noexcept;

//! How often to look again before sleeping when so many threads wait for one another: looking again
//! helps only while the one waited for runs at the same time.
int spins_for(int threads);

//! Tells the processor that a loop waits for another one.
inline void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

//! Wakes threads that wait for a condition. Whoever changes the condition calls notify()
//! afterwards; a waiter that reads the version before it looks at the condition cannot miss a
//! change: either it sees it, or the version has moved and it does not sleep. Without sleepers
//! notify() makes no system call.
class wake_signal {
 public:
  void notify() noexcept {
    version_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0) wake_all(version_);
  }

  //! Looks `spins` times before it sleeps.
  template <class Ready>
  void wait(int spins, Ready ready) {
    wait(spins, nullptr, ready);
  }

  //! @return what ready() says last: false only when the limit has passed.
  template <class Ready>
  bool wait_until(time_point limit, Ready ready) {
    return wait(0, &limit, ready);
  }

 private:
  template <class Ready>
  bool wait(int spins, const time_point* limit, Ready ready) {
    for (int turn = 0; turn < spins; ++turn) {
      if (ready()) return true;
      relax();
    }
    while (true) {
      const std::uint32_t seen = version_.load(std::memory_order_seq_cst);
      if (ready()) return true;
      if (limit != nullptr && std::chrono::steady_clock::now() >= *limit) return false;
      sleepers_.fetch_add(1, std::memory_order_seq_cst);
      sleep_on(version_, seen, limit);
      sleepers_.fetch_sub(1, std::memory_order_seq_cst);
    }
  }

  std::atomic<std::uint32_t> version_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace stretto::executor
