#include "lookout.hpp"

#include <chrono>
#include <utility>

namespace stretto::executor {

lookout::lookout(std::function<void()> look) : look_(std::move(look)), thread_([this] { run(); }) {}

lookout::~lookout() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void lookout::run() {
  constexpr auto pause = std::chrono::milliseconds(100);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, pause, [this] { return ends_; })) {
    sign last = sign::heard;
    if (last_.compare_exchange_strong(last, sign::nothing_since, std::memory_order_acq_rel))
      continue;
    if (last == sign::nothing_since) look_();
  }
}

}  // namespace stretto::executor
