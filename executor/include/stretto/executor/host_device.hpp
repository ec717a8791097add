#pragma once

#include <cstdint>
#include <memory>

#include "stretto/executor/device.hpp"
#include "stretto/executor/monitor.hpp"
#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

//! How a device on the host is made.
struct host_settings {
  //! Commands that a stream's queue holds; 0: all of a step, so that issuing never waits. An engine
  //! refuses more than `deepest`.
  int queue_depth = 0;
  //! Threads of all devices of the process, by which and the number of cores it is chosen how often
  //! a thread looks again before it sleeps; 0: those of this device.
  int threads = 0;
  bool guarded = false;  //!< the step's commands are those of a guarded runner; by the engine

  static constexpr int deepest = 1 << 20;  //!< commands, of a queue
};

//! Bytes of the queues of a host device for the plan.
std::int64_t host_queue_bytes(const plan_view& plan, const host_settings& settings = {});
//! Bytes of its events.
std::int64_t host_event_bytes(const plan_view& plan);

//! A device on the host: a stream is a thread with a bounded queue, an event a counter of steps,
//! the arena one allocation of `plan.arena_bytes` zeroed bytes, aligned to 64, and the host's
//! memory another one of `plan.host_bytes`. What different streams of a GPU would overlap is really
//! overlapped here. Priorities are handed to the stage and otherwise have no effect: the operating
//! system's scheduler decides.
//!
//! The destructor stops the streams and waits for a call that has not returned, telling so once on
//! the standard error stream.
//! @throws std::bad_alloc, std::system_error (threads).
std::unique_ptr<device> make_host_device(const plan_view& plan, const host_settings& settings,
                                         monitor& watch);

}  // namespace stretto::executor
