#include "issuers.hpp"

#include "thread_name.hpp"

namespace stretto::executor {

issuers::issuers(std::span<const std::unique_ptr<runner>> ranks, monitor& watch) : watch_(watch) {
  threads_.reserve(ranks.size());
  try {
    for (const auto& each : ranks) {
      running_.fetch_add(1, std::memory_order_relaxed);
      runner& rank = *each;
      threads_.emplace_back([this, &rank, name = thread_name(rank.plan().rank, "issue")] {
        name_this_thread(name);
        run(rank);
      });
    }
  } catch (...) {
    watch_.stop();
    wake();
    for (std::thread& each : threads_) each.join();
    throw;
  }
}

issuers::~issuers() {
  wake();
  for (std::thread& each : threads_)
    if (each.joinable()) each.join();
}

void issuers::begin(std::int64_t step) noexcept {
  begun_.store(step + 1, std::memory_order_release);
  changed_.notify();
}

void issuers::run(runner& rank) noexcept {
  for (std::int64_t step = 0;; ++step) {
    const auto has_begun = [&] {
      return begun_.load(std::memory_order_acquire) > step || watch_.stopped();
    };
    changed_.wait(0, has_begun);
    if (watch_.stopped()) break;
    rank.issue(step);
  }
  running_.fetch_sub(1, std::memory_order_acq_rel);
  ended_.notify();
}

int issuers::join(time_point limit) noexcept {
  const auto over = [this] { return running_.load(std::memory_order_acquire) == 0; };
  if (!ended_.wait_until(limit, over)) return running_.load(std::memory_order_acquire);
  for (std::thread& each : threads_)
    if (each.joinable()) each.join();
  return 0;
}

}  // namespace stretto::executor
