#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace stretto::bench {

//! Multiprocessor cycles and nanoseconds that went by between two readings.
struct clock_reading {
  std::uint64_t cycles;
  std::uint64_t nanoseconds;
};

//! NCCL's message kernels have 640 threads of 96 registers and 41,280 bytes of shared memory
//! (2.28), so that one block takes a multiprocessor.
inline constexpr int link_threads = 640;
inline constexpr int link_shared_bytes = 41280;

// Launches, on the current GPU.
cudaError_t launch_nothing(cudaStream_t on);
//! One thread that is busy for a time.
cudaError_t launch_delay(std::uint64_t nanoseconds, cudaStream_t on);
cudaError_t launch_clock_reading(clock_reading* to, std::uint64_t nanoseconds, cudaStream_t on);
//! The smallest step, in nanoseconds, that the GPU's timer has gone on by between readings in a
//! time: what kernels here take times by, and pace themselves.
cudaError_t launch_timer_step(std::uint64_t* to, std::uint64_t nanoseconds, cudaStream_t on);
//! Uniform in [-1, 1), the same for the same seed.
cudaError_t fill_random_floats(void* to, std::size_t count, std::uint32_t seed, cudaStream_t on);
cudaError_t fill_random_bf16(void* to, std::size_t count, std::uint32_t seed, cudaStream_t on);

//! Stands in for a message over a link: reads and writes bytes of the GPU's memory no faster than
//! the rate, on a number of multiprocessors. What comes over a link may also be late, each chunk of
//! it by a time of its own, without what follows being late for that.
struct link_message {
  void* to;
  const void* from;
  std::size_t bytes;  //!< rounded down to 16
  double bytes_per_nanosecond;
  int blocks;
  //! Blocks that begin together, on neighbouring multiprocessors (from compute capability 9.0 on);
  //! a divisor of them.
  int cluster = 1;
  double late_nanoseconds = 0;  //!< the most that a chunk is late; uniform, from 0 on
  std::uint32_t seed = 0;       //!< of these times: the same for the same one
};
//! @param begun  when not null, an event to record once all of its blocks run
cudaError_t launch_link(const link_message& what, cudaEvent_t begun, cudaStream_t on);

}  // namespace stretto::bench
