#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "stretto/executor/bootstrap.hpp"
#include "stretto/executor/bootstrap_launch.hpp"

namespace stretto::executor {

//! Where processes meet, and for how long they try.
struct tcp_settings {
  //! Process, number of processes, and where process 0 is reached; the rest of the job by its name.
  launch_info launch{};
  //! Process 0 only: a socket that listens already, which is then taken over; -1: none.
  int listening = -1;
  //! Process 0 only: the one address of its machine at which it listens; empty: at all of them,
  //! since the others may come by another one than MASTER_ADDR names.
  std::string listen_at{};
  //! How long process 0, when it ends, waits for the others to leave.
  std::chrono::nanoseconds linger = std::chrono::seconds(5);
};

//! Over TCP: process 0 serves, in a thread of its own, and everyone connects to it. Who is not of
//! the job is turned away and does no harm; a process that comes for another number of processes,
//! for another job or a second time is told so. One that has left may meet the others at the same
//! port again: where process 0 is still to leave, it is waited for. Nothing is encrypted or
//! authenticated: for networks that are trusted.
//!
//! A process that dies or abandons the others is told of by failure(); one whose machine has gone
//! without a word, a minute later.
//!
//! Returns when process 0 has let this one in; who never comes is found by the first exchange. What
//! the system needs to look up a name is not bounded by `limit`: give a number where that matters.
//! @throws bootstrap_error for settings that make no sense, a port that is taken, an address at
//!         which nobody answers until `limit`, or somebody else does, or when this process is
//!         turned away.
std::unique_ptr<bootstrap> make_tcp_bootstrap(const tcp_settings& with, time_point limit);

}  // namespace stretto::executor
