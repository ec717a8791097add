#pragma once

#include <chrono>
#include <memory>

#include "stretto/executor/bootstrap.hpp"
#include "stretto/executor/cuda/device.hpp"
#include "stretto/executor/transport.hpp"

namespace stretto::executor {

//! How NCCL is asked for its communicators.
struct nccl_settings {
  //! Blocks of one message's kernel, of which NCCL makes the next power of two; each takes a
  //! multiprocessor for as long as it waits.
  int message_blocks = 4;
  int sum_blocks = 8;  //!< and of one sum's
  //! Blocks that must start together (cgaClusterSize); small ones find room beside products.
  int cluster = 1;
  //! Registers every arena with the communicators of its rank, so that NCCL may do without copies
  //! of its own. All of a job's arenas must then be nccl_memory(); all processes say the same.
  bool registered = false;
  //! That every kernel of the stages has been launched once before the first step, or was loaded by
  //! cudaFuncGetAttributes. CUDA else loads a kernel at its first launch, and may wait for all that
  //! runs before it does: for a message, too, whose sender waits for this rank. Not needed where
  //! the process is started with CUDA_MODULE_LOADING=EAGER, or sets that before its first call of
  //! CUDA.
  bool kernels_loaded = false;
  //! How long all processes may take to agree; and to connect, from when this one has made its
  //! devices, which takes as long as the host takes to pin what stashes wait in.
  std::chrono::nanoseconds opening = std::chrono::minutes(2);
  //! How long communicators may take to end.
  std::chrono::nanoseconds patience = std::chrono::seconds(10);
};

//! Memory that NCCL can register, for cuda_settings::arena.
arena_memory nccl_memory();

//! Between GPUs, of one process or several, by NCCL. Every directed channel and every group has a
//! communicator of its own, with resources of its own, because NCCL runs what shares one in order,
//! whatever streams it is on; they are named "pp:3->4" and "group:0" in NCCL's own output. Opening
//! compares the plans of all processes (see agree()), connects with a deadline, and has every
//! communicator do one operation of each kind that a step has for it, alone on its GPUs and on the
//! arenas as the devices have cleared them, so that nothing is set up lazily while others wait in a
//! step.
//!
//! A kernel that waits for its peer holds its blocks' multiprocessors: one of a stage that must
//! have more at once than those leave (a cooperative launch) may wait for what waits for it.
//!
//! Sums are added in NCCL's own order: every member gets the same bits, but not those of the
//! loopback transports. Calls are non-blocking. What NCCL reports of a peer is looked for while a
//! step is under way, and ends it naming the first instruction not done on that communicator; so
//! does a process that has failed, where `between` tells of it: one whose step fails, or whose
//! engine cannot be made, says why there (bootstrap::abandon, the last call that it takes). A call
//! that stays in progress is waited for until the step's deadline: a GPU whose queue is full may be
//! all that it waits for. Where a launch of a stage waits for such a queue, a thread of the
//! transport's own looks.
//! All communicators are then revoked at once, by a thread of their own, and freed with the
//! transport; those with a call in progress or failed, all that a graph replays, and all of an NCCL
//! before 2.28.7, are aborted at once. That NCCL does not come back from it is told on the standard
//! error stream.
//!
//! Steps can be recorded into a step_graph where all processes record theirs and each has one GPU.
//! Between machines NCCL then has the host called back within the graph, which costs. Communicators
//! live as long as what was recorded with them.
//! @param between  exchanges the communicators' ids; outlives the transport
//! @throws plan_error when the settings make no sense. open() and attach() throw it, too: when
//!         plans differ, NCCL fails, is older than 2.27 or a process does not come, when kernels
//!         that wait could fill a GPU (with what NCCL_MAX_CTAS, NCCL_MIN_NCHANNELS and
//!         NCCL_MIN_P2P_NCHANNELS make of them), and where launches block, wait for one another or
//!         load kernels while others wait (CUDA_LAUNCH_BLOCKING, NCCL_LAUNCH_MODE,
//!         CUDA_MODULE_LOADING).
std::unique_ptr<transport> make_nccl_transport(bootstrap& between,
                                               const nccl_settings& settings = {});

}  // namespace stretto::executor
