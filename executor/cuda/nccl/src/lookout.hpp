#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace stretto::executor {

//! A thread that looks in the place of the one that issues when that has been held up: a launch
//! waits for room in a stream's queue, and no longer sees whether a peer is lost or the time is up.
class lookout {
 public:
  //! @param look  is called now and then while a call was the last that was heard of the issuer
  explicit lookout(std::function<void()> look);
  ~lookout();
  lookout(const lookout&) = delete;
  lookout& operator=(const lookout&) = delete;

  //! The issuer has been here, and goes on to issue.
  void issues() noexcept { heard_.store(sign::issues, std::memory_order_release); }
  //! Or it looks itself from now on.
  void looks() noexcept { heard_.store(sign::looks, std::memory_order_release); }

 private:
  enum class sign { looks, issues, nothing_since };

  void run();

  const std::function<void()> look_;
  std::atomic<sign> heard_{sign::looks};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;
  std::thread thread_;  // last: it uses all others
};

}  // namespace stretto::executor
