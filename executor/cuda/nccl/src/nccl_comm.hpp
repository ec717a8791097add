#pragma once

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "stretto/executor/monitor.hpp"
#include "stretto/executor/transport.hpp"

namespace stretto::executor {

//! One rank's handle of a communicator, and what was enqueued on it last. Calls come from the
//! rank's issuing thread, look() from another.
class nccl_comm {
 public:
  struct place {
    std::string name{};     //!< NCCL's
    std::string subject{};  //!< ours: "channel 3 -> 4"
    int holder = 0;         //!< the plan's rank that this is the handle of
    int rank = 0;           //!< its number in the communicator, of `size`
    int size = 0;
    int blocks = 0;
    int cluster = 0;
    int operations = 0;  //!< in a step
    std::vector<int> firsts{};  //!< instructions: one of each kind, for the first use
  };

  nccl_comm(place at, const ncclUniqueId& id);

  //! On the current GPU; ready() tells when it is done.
  void begin();
  //! Not when it is given up. @throws transport_error when NCCL has failed
  bool ready() const;
  //! Waits until NCCL has done what it was asked for.
  //! @param given_up  is asked now and then; whatever it throws is thrown
  //! @return false when it was given up
  //! @throws transport_error when it fails, late_error when it is late
  bool settle(const char* call, time_point limit, const std::function<bool()>& given_up);
  //! @throws transport_error unless the code says that the call is done, or in progress
  void must(ncclResult_t code, const char* call) const;

  //! The rank's arena, as long as the communicator is in use.
  //! @throws transport_error when NCCL refuses it
  void register_arena(std::span<std::byte> arena);
  void deregister() noexcept;

  //! Notes the next operation.
  void note(const launch& at);
  //! The first operation noted that is not done, else the last; -1: none was noted.
  std::int64_t first_missing(const device& on) const;

  //! For a call, which is under way until settle() has seen its end.
  ncclComm_t call() {
    calling_.store(true, std::memory_order_release);
    return comm_.load(std::memory_order_acquire);
  }
  bool is_calling() const { return calling_.load(std::memory_order_acquire); }
  //! Given up, to who ends it.
  ncclComm_t release() { return comm_.exchange(nullptr, std::memory_order_acq_rel); }
  const place& where() const { return at_; }

 private:
  //! Of a ring as long as a step.
  struct noted {
    std::atomic<std::int64_t> ticket{-1};
    std::atomic<int> stream{0};
  };

  const place at_;
  const ncclUniqueId id_;
  ncclConfig_t config_;
  std::atomic<ncclComm_t> comm_{nullptr};  // null, too, when it is given up
  std::atomic<bool> calling_{false};
  void* registration_ = nullptr;
  std::unique_ptr<noted[]> ring_;
  std::atomic<std::int64_t> count_{0};
};

//! What NCCL says of an error, with the way to its own diagnosis.
std::string nccl_text(ncclResult_t code, const char* call, ncclComm_t comm);

}  // namespace stretto::executor
