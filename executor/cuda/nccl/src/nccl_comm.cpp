#include "nccl_comm.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "stretto/executor/error.hpp"

namespace stretto::executor {

std::string nccl_text(ncclResult_t code, const char* call, ncclComm_t comm) {
  std::string text = std::string(call) + ": " + ncclGetErrorString(code);
  const char* const more = ncclGetLastError(comm);
  if (more != nullptr && *more != '\0') text += std::string(" (") + more + ')';
  return text + "; `ncclras` on any of the job's machines tells what NCCL knows of its processes";
}

nccl_comm::nccl_comm(place at, const ncclUniqueId& id)
    : at_(std::move(at)),
      id_(id),
      config_(NCCL_CONFIG_INITIALIZER),
      ring_(std::make_unique<noted[]>(static_cast<std::size_t>(std::max(at_.operations, 1)))) {
  // Only calls that do not block can be ended.
  config_.blocking = 0;
  config_.cgaClusterSize = at_.cluster;
  config_.maxCTAs = at_.blocks;
  config_.splitShare = 0;
  config_.commName = at_.name.c_str();
}

void nccl_comm::begin() {
  static_cast<void>(call());
  ncclComm_t made = nullptr;
  const ncclResult_t code = ncclCommInitRankConfig(&made, at_.size, id_, at_.rank, &config_);
  comm_.store(made, std::memory_order_release);
  must(code, "ncclCommInitRankConfig");
}

void nccl_comm::must(ncclResult_t code, const char* call) const {
  if (code == ncclSuccess || code == ncclInProgress) [[likely]]
    return;
  throw transport_error(at_.subject + ": " + nccl_text(code, call, comm_));
}

bool nccl_comm::ready() const {
  ncclComm_t const comm = comm_.load(std::memory_order_acquire);
  if (comm == nullptr) return false;
  ncclResult_t state = ncclSuccess;
  must(ncclCommGetAsyncError(comm, &state), "ncclCommGetAsyncError");
  must(state, "NCCL");
  return state == ncclSuccess;
}

bool nccl_comm::settle(const char* call, time_point limit, const std::function<bool()>& given_up) {
  // NCCL does every call in a thread that it starts for it, which takes some tens of microseconds;
  // Linux sleeps for some 50 more than it is asked to.
  constexpr int looks_awake = 1000;  // some 200 us
  for (int looks = 1; !ready(); ++looks) {
    if (looks < looks_awake) {
      if (looks % 32 == 0 && given_up()) return false;
      std::this_thread::yield();
      continue;
    }
    if (given_up()) return false;
    if (std::chrono::steady_clock::now() >= limit)
      throw late_error(at_.subject + ": " + call +
                       " does not end: another rank has not come or cannot be reached, or a "
                       "GPU takes no more work");
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  calling_.store(false, std::memory_order_release);
  return true;
}

void nccl_comm::register_arena(std::span<std::byte> arena) {
  if (arena.empty()) return;
  const ncclResult_t code = ncclCommRegister(call(), arena.data(), arena.size(), &registration_);
  must(code, "ncclCommRegister");
}

void nccl_comm::deregister() noexcept {
  if (void* const known = std::exchange(registration_, nullptr); known != nullptr)
    static_cast<void>(ncclCommDeregister(comm_, known));
}

void nccl_comm::note(const launch& at) {
  const std::int64_t number = count_.load(std::memory_order_relaxed);
  noted& entry = ring_[static_cast<std::size_t>(number % std::max(at_.operations, 1))];
  entry.stream.store(at.stream, std::memory_order_relaxed);
  entry.ticket.store(at.ticket, std::memory_order_release);
  count_.store(number + 1, std::memory_order_release);
}

std::int64_t nccl_comm::first_missing(const device& on) const {
  const std::int64_t count = count_.load(std::memory_order_acquire);
  const std::int64_t kept = std::min<std::int64_t>(count, std::max(at_.operations, 1));
  std::int64_t ticket = -1;
  for (std::int64_t number = count - kept; number < count; ++number) {
    const noted& entry = ring_[static_cast<std::size_t>(number % std::max(at_.operations, 1))];
    ticket = entry.ticket.load(std::memory_order_acquire);
    if (on.progress_of(entry.stream.load(std::memory_order_relaxed)).finished < ticket) break;
  }
  return ticket;
}

}  // namespace stretto::executor
