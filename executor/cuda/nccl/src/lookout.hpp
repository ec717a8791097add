#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace stretto::executor {

//! A thread that looks in the place of those who issue and poll a step when nothing has been heard
//! of them for a while: a launch waits for room in a stream's queue, or a query for the launch, and
//! no longer sees whether a peer is lost or the time is up.
class lookout {
 public:
  //! @param look  is called now and then while nothing is heard
  explicit lookout(std::function<void()> look);
  ~lookout();
  lookout(const lookout&) = delete;
  lookout& operator=(const lookout&) = delete;

  //! Somebody has been here, and goes on.
  void heard() noexcept { last_.store(sign::heard, std::memory_order_release); }
  //! Nobody will be until the next sign: there is no step. When it returns nobody looks any more.
  void rest() noexcept {
    const std::lock_guard lock(mutex_);
    last_.store(sign::rests, std::memory_order_release);
  }

 private:
  enum class sign { rests, heard, nothing_since };

  void run();

  const std::function<void()> look_;
  std::atomic<sign> last_{sign::rests};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_;  // last: it uses all others
};

}  // namespace stretto::executor
