#include "nccl_ending.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>
#include <utility>

#if NCCL_VERSION_CODE >= 22807
// Or a program would not load beside an older NCCL than it was built with.
#pragma weak ncclCommRevoke
#endif

namespace stretto::executor {
namespace {

using clock = std::chrono::steady_clock;

ncclResult_t state_of(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t code = ncclCommGetAsyncError(comm, &state);
  return code == ncclSuccess ? state : code;
}

using place = std::vector<ncclComm_t>::iterator;

// For calls that are about to end; all else that is under way goes on meanwhile.
constexpr std::chrono::nanoseconds brief = std::chrono::milliseconds(50);

//! Waits while any is in progress. @return where those begin that have not come to a good end
place settle(place from, place to, std::chrono::nanoseconds patience) {
  const clock::time_point limit = clock::now() + patience;
  const auto under_way = [](ncclComm_t each) { return state_of(each) == ncclInProgress; };
  while (std::count_if(from, to, under_way) > 0 && clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  return std::partition(from, to, [](ncclComm_t each) { return state_of(each) == ncclSuccess; });
}

}  // namespace

struct nccl_ending::shared {
  std::vector<ncclComm_t> all;
  bool at_rest = false;  // nothing is under way
  bool revocable = true;
  std::ptrdiff_t calling = 0;  // of all, the last
  int gpu = -1;
  std::chrono::nanoseconds patience{};
  std::atomic<bool> unused{false};  // by what was recorded, too
  std::atomic<bool> over{false};
  std::thread thread;

  void end_all() {
    if (at_rest) {
      choose_gpu();
      std::for_each(all.begin(), all.end(), ncclCommDestroy);
      over.store(true, std::memory_order_release);
      return;
    }
    const place others = revocable ? revoke() : all.begin();
    together(others, all.end(), ncclCommAbort);
    if (others != all.begin()) {
      const place restless = settle(all.begin(), others, patience);
      unused.wait(false, std::memory_order_acquire);
      together(all.begin(), restless, ncclCommDestroy);
      together(restless, others, ncclCommAbort);
    }
    over.store(true, std::memory_order_release);
  }

 private:
  template <class Call>
  void together(place from, place to, Call call) const {
    if (from == to) return;
    ncclGroupStart();
    std::for_each(from, to, call);
    end_group();
  }
  //! Without one of the process's what NCCL asks of CUDA in the end would begin to use GPU 0, which
  //! may be another process's.
  void choose_gpu() const {
    if (gpu >= 0) static_cast<void>(cudaSetDevice(gpu));
  }
  //! All have been told to stop, which CUDA may have to wait for: a launch that has no room holds
  //! its lock.
  void end_group() const {
    choose_gpu();
    ncclGroupEnd();
  }

  //! Stops what is under way and frees nothing. @return where those begin that are not revoked
  place revoke() {
#if NCCL_VERSION_CODE >= 22807
    int version = 0;
    if (ncclGetVersion(&version) != ncclSuccess || version < 22807) return all.begin();
    // Where a call is in progress or has failed, NCCL 2.28.9 writes to memory that it has freed.
    const place failed = settle(all.end() - calling, all.end(), std::min(patience, brief));
    const auto is_revoked = [](ncclComm_t each) {
      // In a group it is done at the end, and what the call returns is what was wrong before.
      const ncclResult_t before = state_of(each);
      const ncclResult_t code = ncclCommRevoke(each, NCCL_REVOKE_DEFAULT);
      return code == ncclSuccess || code == ncclInProgress ||
             (code == before && code != ncclInvalidArgument);
    };
    ncclGroupStart();
    const place refused = std::partition(all.begin(), failed, is_revoked);
    end_group();
    return refused;
#else
    return all.begin();
#endif
  }
};

nccl_ending::~nccl_ending() {
  leave();
}

void nccl_ending::leave() noexcept {
  if (!shared_) return;
  shared_->unused.store(true, std::memory_order_release);
  shared_->unused.notify_one();
  if (wait()) {
    shared_->thread.join();
  } else {
    std::fprintf(stderr, "stretto: NCCL does not come back from ending %zu communicators\n",
                 shared_->all.size());
    shared_->thread.detach();
  }
  shared_.reset();
}

bool nccl_ending::wait() noexcept {
  // The thread may have to wait for both, that all stops and that all ends.
  const clock::time_point limit = clock::now() + 2 * patience_ + brief;
  while (!shared_->over.load(std::memory_order_acquire)) {
    if (clock::now() >= limit) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

void nccl_ending::finish(std::vector<ncclComm_t> all, int gpu) noexcept {
  for (ncclComm_t each : all) ncclCommFinalize(each);
  const bool at_rest = settle(all.begin(), all.end(), patience_) == all.end();
  end(std::move(all), at_rest, false, 0, gpu);
  if (at_rest) leave();
}

void nccl_ending::abort(std::vector<ncclComm_t> all, std::ptrdiff_t calling, bool replaying,
                        int gpu) noexcept {
  end(std::move(all), false, !replaying, calling, gpu);
}

void nccl_ending::end(std::vector<ncclComm_t> all, bool at_rest, bool revocable,
                      std::ptrdiff_t calling, int gpu) noexcept {
  if (all.empty() || shared_) return;
  try {
    shared_ = std::make_shared<shared>();
    shared_->all = std::move(all);
    shared_->at_rest = at_rest;
    shared_->revocable = revocable;
    shared_->calling = calling;
    shared_->gpu = gpu;
    shared_->patience = patience_;
    // It may outlive this object, and then ends with the process.
    shared_->thread = std::thread([held = shared_] { held->end_all(); });
  } catch (...) {
    // Without memory or threads the process is about to end; NCCL's kernels end with it.
    shared_.reset();
  }
}

}  // namespace stretto::executor
