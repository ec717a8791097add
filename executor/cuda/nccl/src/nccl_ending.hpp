#pragma once

#include <nccl.h>

#include <chrono>
#include <memory>
#include <vector>

namespace stretto::executor {

//! How the communicators of a process end: in a thread of their own, because NCCL may not come
//! back, and all at once, because ending one may wait for the GPU on which another one's kernel
//! spins. Where NCCL can (2.28.7), they are first revoked, which stops what is under way and frees
//! nothing; what has come to rest is then destroyed, and only the others are aborted.
class nccl_ending {
 public:
  explicit nccl_ending(std::chrono::nanoseconds patience) : patience_(patience) {}
  //! By now nothing that was recorded with the communicators may be left: they are freed. Waits for
  //! the thread as long as its patience lasts, then says so and leaves it behind.
  ~nccl_ending();
  nccl_ending(const nccl_ending&) = delete;
  nccl_ending& operator=(const nccl_ending&) = delete;

  //! Waits for what is under way to other processes, then frees all; aborts all when one does not
  //! end.
  void finish(std::vector<ncclComm_t> all) noexcept;
  //! Ends what is under way. Does not wait.
  void abort(std::vector<ncclComm_t> all) noexcept;

 private:
  struct shared;

  void end(std::vector<ncclComm_t> all, bool revocable) noexcept;
  bool wait() noexcept;

  std::chrono::nanoseconds patience_;
  std::shared_ptr<shared> shared_;
};

}  // namespace stretto::executor
