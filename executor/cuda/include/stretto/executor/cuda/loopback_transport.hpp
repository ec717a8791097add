#pragma once

#include <memory>

#include "stretto/executor/transport.hpp"

namespace stretto::executor {

//! How messages pass between the GPUs of one process.
struct cuda_loopback_settings {
  //! Blocks of the kernels that sum and that copy within a GPU, at most: multiprocessors that each
  //! may take.
  int blocks = 16;
};

//! Between the ranks of one process, on one GPU or on several; all of them must be in it.
//!
//! A message is a copy on the receiver's stream, between events: it begins when both streams have
//! come to it, and the sender's goes on when it is done: within a GPU by a kernel, between GPUs
//! from peer to peer where one reaches the other's memory (attach() sees to that), else by way of
//! the host. Within a GPU a stream that only sends to one rank, which receives that on one stream,
//! is one with it (device::merge), without those events. A sum is one kernel, on the stream of the
//! member of the lowest rank, which adds in the order of the ranks and writes to all members; the
//! others' streams wait for it.
//!
//! Events are waited for after they are recorded only if one thread issues for all ranks
//! (issuing::caller); the engine refuses anything else. Where a send meets its receive, job and
//! size are compared, as the loopback transport does.
//! @throws plan_error when the settings make no sense. Of its functions, open() and attach() throw
//!         plan_error when a rank is missing, a group has more than 64 members, a member's GPU
//!         cannot reach another's memory with which it sums, or steps are recorded as a graph,
//!         which copies between GPUs only where each reaches the other.
std::unique_ptr<transport> make_cuda_loopback_transport(
    const cuda_loopback_settings& settings = {});

}  // namespace stretto::executor
