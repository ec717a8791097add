#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "stretto/executor/cuda/error.hpp"
#include "stretto/executor/device.hpp"
#include "stretto/executor/monitor.hpp"
#include "stretto/executor/stage.hpp"
#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

//! A stream of the caller's that takes the place of one of the plan's; it outlives the device. Not
//! the default stream, nor cudaStreamPerThread, which is another one to each thread that uses it,
//! and no stream twice. What the lender has on it behind a step that has ended well is his own:
//! nobody waits for that. Behind one that has failed it cannot be told from the step's.
struct lent_stream {
  int index = 0;  //!< into plan_view::streams
  cudaStream_t native = nullptr;
};

//! Who gives the arena's memory, on the current GPU and at a multiple of 64 bytes, and takes it
//! back: both or none. For sums and graphs of the loopback transport between several GPUs it must
//! be cudaMalloc's, or opened to those GPUs where it is made (as ncclMemAlloc does): memory of a
//! pool, or mapped by the driver's calls, is not opened by cudaDeviceEnablePeerAccess.
struct arena_memory {
  void* (*allocate)(std::size_t bytes) = nullptr;  //!< throws what is wrong
  void (*release)(void* memory) = nullptr;
};

//! How a device on a GPU is made.
struct cuda_settings {
  int device = 0;  //!< CUDA's number of the GPU
  //! Makes events that take times, which options::trace_steps needs.
  bool timing = false;
  std::vector<lent_stream> lent{};  //!< see stream_ref.hpp
  arena_memory arena{};             //!< none: cudaMalloc and cudaFree
  //! How long the destructor waits for work that has not ended. Then it says so on the standard
  //! error stream and leaves streams and memory to the end of the process: CUDA would wait without
  //! limit before it takes them back. An engine whose step has failed does so for all its ranks, as
  //! CUDA waits for other ranks' work, too.
  std::chrono::nanoseconds patience = std::chrono::seconds(10);
};

//! GPUs that this process can use; 0 where there is none, or no driver that knows this CUDA.
//! @throws cuda::error where they are there and do not answer, such as cudaErrorSystemNotReady
int cuda_device_count();

//! A device on a GPU. All is made here: streams of the plan's priorities (its largest number is
//! CUDA's least urgent, and what lies beyond CUDA's range is the most urgent), events without
//! times, one arena of `plan.arena_bytes` zeroed bytes, `plan.host_bytes` of pinned memory. A step
//! allocates nothing, waits for nothing and calls nobody back: its end is an event that poll()
//! looks for.
//!
//! The plan's own streams do not wait for the default stream. What a step is to find done, such as
//! the copy of a batch, must have ended before step() is called, or a stage has its stream wait for
//! it (cudaStreamWaitEvent); when step() returns, all of the step is done.
//!
//! A stage is called by the issuing thread, with the GPU made current, and launches its work on
//! context::stream::native, a cudaStream_t; it waits for nothing. Who has called step() finds some
//! rank's GPU current behind it. A launch that fails is reported with its instruction: what the
//! stage leaves as CUDA's last error is taken for it, but for cudaErrorNotReady. What fails on the
//! GPU is seen by poll() or by a later call: reported then is the first instruction not known to be
//! done.
//!
//! Events are asked for while a step is under way, which a capture of the process's own forbids
//! unless it is cudaStreamCaptureModeThreadLocal (as make_cuda_graph's are) or relaxed.
//! @throws cuda::error, std::bad_alloc; plan_error when settings and plan do not fit.
std::unique_ptr<device> make_cuda_device(const plan_view& plan, const cuda_settings& settings,
                                         monitor& watch);

//! The stream on which a stage is to launch its work.
inline cudaStream_t native_stream(const context& at) {
  return static_cast<cudaStream_t>(at.stream.native);
}

}  // namespace stretto::executor
