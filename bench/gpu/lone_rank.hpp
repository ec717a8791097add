#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>

namespace stretto::bench {

//! NCCL's communicator of one rank, whose messages to itself run on its usual kernels. (A sum over
//! one rank would do nothing.)
class lone_rank {
 public:
  //! @param with  of `blocking` 0: calls return before they are done, and a thread of NCCL's
  //!              launches what they ask for; waited for here
  explicit lone_rank(ncclConfig_t with) : waits_(with.blocking == 0) {
    ncclUniqueId id;
    must(ncclGetUniqueId(&id), "ncclGetUniqueId");
    must(ncclCommInitRankConfig(&comm_, 1, id, 0, &with), "ncclCommInitRankConfig");
    settle("ncclCommInitRankConfig");
  }
  ~lone_rank() { static_cast<void>(ncclCommDestroy(comm_)); }
  lone_rank(const lone_rank&) = delete;
  lone_rank& operator=(const lone_rank&) = delete;

  //! @throws std::runtime_error with the call and what NCCL says of it, or that it does not end
  void pass(const void* from, void* to, std::size_t bytes, cudaStream_t on) const {
    must(ncclGroupStart(), "ncclGroupStart");
    // The group ends in any case, or the thread's next one would be part of it.
    const ncclResult_t sent = ncclSend(from, bytes, ncclInt8, 0, comm_, on);
    const ncclResult_t received = ncclRecv(to, bytes, ncclInt8, 0, comm_, on);
    const ncclResult_t ended = ncclGroupEnd();
    must(sent, "ncclSend");
    must(received, "ncclRecv");
    must(ended, "ncclGroupEnd");
    settle("ncclGroupEnd");
  }
  //! All that it was given is done; nothing may follow.
  //! @throws std::runtime_error as pass()
  void finish() {
    must(ncclCommFinalize(comm_), "ncclCommFinalize");
    settle("ncclCommFinalize");
  }

 private:
  void must(ncclResult_t code, const char* call) const {
    if (code != ncclSuccess && !(waits_ && code == ncclInProgress))
      throw std::runtime_error(std::string(call) + ": " + ncclGetErrorString(code));
  }
  void settle(const char* call) const {
    if (!waits_) return;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
      must(ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError");
      must(state, call);
      if (std::chrono::steady_clock::now() >= limit)
        throw std::runtime_error(std::string(call) + " does not end");
      std::this_thread::yield();
    }
  }

  bool waits_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace stretto::bench
