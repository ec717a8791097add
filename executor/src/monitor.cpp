#include "stretto/executor/monitor.hpp"

#include <utility>

#include "wake_signal.hpp"

namespace stretto::executor {

struct monitor::sleeper {
  wake_signal changed;
};

monitor::monitor(int ranks) : ranks_(ranks), sleeper_(std::make_unique<sleeper>()) {}

monitor::~monitor() = default;

void monitor::begin_step(time_point deadline) noexcept {
  deadline_.store(deadline.time_since_epoch().count(), std::memory_order_relaxed);
  ended_.store(0, std::memory_order_relaxed);
}

void monitor::rank_ended() noexcept {
  // Only the last one has news for the waiter.
  if (ended_.fetch_add(1, std::memory_order_acq_rel) + 1 == ranks_) sleeper_->changed.notify();
}

monitor::outcome monitor::wait_until(time_point deadline) noexcept {
  const auto over = [this] {
    return reported_.load(std::memory_order_acquire) ||
           ended_.load(std::memory_order_acquire) == ranks_;
  };
  const bool in_time = sleeper_->changed.wait_until(deadline, over);
  if (reported_.load(std::memory_order_acquire)) return outcome::failed;
  return in_time ? outcome::ended : outcome::late;
}

void monitor::fail(int rank, std::int64_t ticket, std::exception_ptr cause) noexcept {
  if (!claimed_.exchange(true, std::memory_order_acq_rel)) {
    report_ = {rank, ticket, std::move(cause)};
    reported_.store(true, std::memory_order_release);
  }
  stop();
}

void monitor::stop() noexcept {
  stop_.store(true, std::memory_order_release);
  sleeper_->changed.notify();
}

}  // namespace stretto::executor
