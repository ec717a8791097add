#pragma once

#include <nccl.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

namespace stretto::executor {

//! How the communicators of a process end: in a thread of their own, because NCCL may not come
//! back, and all at once, because ending one may wait for the GPU on which another one's kernel
//! spins. Where NCCL can (2.28.7), they are first revoked, which stops what is under way and frees
//! nothing; only those that cannot be are aborted at once. The others live as long as what was
//! recorded with them: what has then come to rest is destroyed, and the rest aborted. Of a replayed
//! graph none is revoked: NCCL takes that back as soon as what its streams wait for is done, which
//! may be an early part of the replay, and what comes behind would spin on. An abort stays until
//! the graph is gone.
class nccl_ending {
 public:
  explicit nccl_ending(std::chrono::nanoseconds patience) : patience_(patience) {}
  //! By now nothing that was recorded with the communicators may be left: they are freed. Waits for
  //! the thread as long as its patience lasts, then says so and leaves it behind.
  ~nccl_ending();
  nccl_ending(const nccl_ending&) = delete;
  nccl_ending& operator=(const nccl_ending&) = delete;

  //! Waits for what is under way to other processes, then frees all, no longer than its patience
  //! lasts; aborts all when one does not end.
  //! @param gpu  one that the process uses; below zero: none
  void finish(std::vector<ncclComm_t> all, int gpu) noexcept;
  //! Ends what is under way. Does not wait.
  //! @param calling    the number of those at the end whose last call may be in progress, or has
  //!                   failed
  //! @param replaying  whether a graph may run that they are part of
  //! @param gpu        as of finish()
  void abort(std::vector<ncclComm_t> all, std::ptrdiff_t calling, bool replaying,
             int gpu) noexcept;

 private:
  struct shared;

  void end(std::vector<ncclComm_t> all, bool at_rest, bool revocable, std::ptrdiff_t calling,
           int gpu) noexcept;
  void leave() noexcept;
  bool wait() noexcept;

  std::chrono::nanoseconds patience_;
  std::shared_ptr<shared> shared_;
};

}  // namespace stretto::executor
