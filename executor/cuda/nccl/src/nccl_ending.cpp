#include "nccl_ending.hpp"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>
#include <utility>

namespace stretto::executor {
namespace {

using clock = std::chrono::steady_clock;

bool in_progress(ncclComm_t comm) {
  ncclResult_t state = ncclSuccess;
  return ncclCommGetAsyncError(comm, &state) == ncclSuccess && state == ncclInProgress;
}

}  // namespace

struct nccl_ending::shared {
  std::vector<ncclComm_t> all;
  std::atomic<bool> over{false};
  std::thread thread;

  void abort_all() {
    ncclGroupStart();
    for (ncclComm_t each : all) ncclCommAbort(each);
    ncclGroupEnd();
    over.store(true, std::memory_order_release);
  }
};

nccl_ending::~nccl_ending() {
  if (!shared_) return;
  if (wait()) {
    shared_->thread.join();
    return;
  }
  std::fprintf(stderr, "stretto: NCCL does not come back from aborting %zu communicators\n",
               shared_->all.size());
  shared_->thread.detach();
}

bool nccl_ending::wait() noexcept {
  const clock::time_point limit = clock::now() + patience_;
  while (!shared_->over.load(std::memory_order_acquire)) {
    if (clock::now() >= limit) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

void nccl_ending::finish(std::vector<ncclComm_t> all) noexcept {
  for (ncclComm_t each : all) ncclCommFinalize(each);
  const clock::time_point limit = clock::now() + patience_;
  while (std::any_of(all.begin(), all.end(), in_progress) && clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  std::vector<ncclComm_t> rest;
  for (ncclComm_t each : all) {
    ncclResult_t state = ncclSuccess;
    if (ncclCommGetAsyncError(each, &state) == ncclSuccess && state == ncclSuccess)
      ncclCommDestroy(each);
    else
      rest.push_back(each);
  }
  abort(std::move(rest));
}

void nccl_ending::abort(std::vector<ncclComm_t> all) noexcept {
  if (all.empty() || shared_) return;
  try {
    shared_ = std::make_shared<shared>();
    shared_->all = std::move(all);
    // It may outlive this object, and then ends with the process.
    shared_->thread = std::thread([held = shared_] { held->abort_all(); });
  } catch (...) {
    // Without memory or threads the process is about to end; NCCL's kernels end with it.
    shared_.reset();
  }
}

}  // namespace stretto::executor
