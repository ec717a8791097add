#include <cuda_bf16.h>

#include "kernels.hpp"

namespace {

__device__ unsigned long long now() {
  unsigned long long value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}

__global__ void nothing() {}

__global__ void delay(unsigned long long nanoseconds) {
  const unsigned long long begin = now();
  while (now() - begin < nanoseconds) {
  }
}

__global__ void read_clock(stretto::bench::clock_reading* to, unsigned long long nanoseconds) {
  const unsigned long long begin = now();
  const long long first = clock64();
  unsigned long long end = begin;
  while (end - begin < nanoseconds) end = now();
  to->cycles = static_cast<std::uint64_t>(clock64() - first);
  to->nanoseconds = end - begin;
}

__global__ void find_timer_step(std::uint64_t* to, unsigned long long nanoseconds) {
  const unsigned long long begin = now();
  unsigned long long least = 0;
  for (unsigned long long last = begin; last - begin < nanoseconds;) {
    const unsigned long long next = now();
    if (next != last && (least == 0 || next - last < least)) least = next - last;
    last = next;
  }
  *to = least;
}

//! A hash of the place and the seed.
__device__ float random_at(unsigned place, unsigned seed) {
  unsigned bits = place * 0x9e3779b9u ^ seed;
  bits ^= bits >> 16;
  bits *= 0x7feb352du;
  bits ^= bits >> 15;
  bits *= 0x846ca68bu;
  bits ^= bits >> 16;
  return static_cast<float>(bits >> 8) * (2.0f / (1 << 24)) - 1.0f;
}

template <class Element>
__global__ void fill(Element* to, std::size_t count, unsigned seed) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t at = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; at < count;
       at += stride)
    to[at] = static_cast<Element>(random_at(static_cast<unsigned>(at), seed));
}

//! Of a thread's loads, as many as take up the registers of NCCL's kernels. At 370 GB/s each of 8
//! blocks reads 46 bytes a nanosecond: as an H200's memory is about 800 ns away, 37 KB of them must
//! be on their way at any time, and more beside a matmul, which makes it slower. These are 164 KB,
//! and asked for 3.5 us before their time.
constexpr int in_flight = 16;

//! A block copies every gridDim.x-th chunk, and goes on when the link would have moved it, or later
//! where that is late. The next one is on its way meanwhile, into the registers that a store has
//! left.
__global__ void __launch_bounds__(stretto::bench::link_threads, 1)
    link(uint4* to, const uint4* from, std::size_t count, double nanoseconds_per_element,
         double late, unsigned seed) {
  constexpr int threads = stretto::bench::link_threads;
  constexpr std::size_t chunk = threads * in_flight;
  const unsigned long long begin = now();
  const std::size_t stride = gridDim.x * chunk;
  const std::size_t mine = blockIdx.x * chunk + threadIdx.x;
  to += mine;
  from += mine;
  // What there is from here on, of this chunk and of the next.
  auto left = static_cast<long long>(count) - static_cast<long long>(mine);
  auto next = left - static_cast<long long>(stride);
  uint4 held[in_flight];
#pragma unroll
  for (int piece = 0; piece < in_flight; ++piece)
    if (piece * threads < left) held[piece] = __ldcs(from + piece * threads);
  // What all blocks have moved when this one is done with its chunk.
  std::size_t moved = 0;
  for (std::size_t first = blockIdx.x * chunk; first < count; first += stride) {
    from += stride;
#pragma unroll
    for (int piece = 0; piece < in_flight; ++piece) {
      if (piece * threads < left) __stcs(to + piece * threads, held[piece]);
      if (piece * threads < next) held[piece] = __ldcs(from + piece * threads);
    }
    to += stride;
    left = next;
    next -= static_cast<long long>(stride);
    moved = min(moved + stride, count);
    if (threadIdx.x == 0) {
      const float part = 0.5f + 0.5f * random_at(static_cast<unsigned>(first / chunk), seed);
      const auto due = static_cast<unsigned long long>(
          static_cast<double>(moved) * nanoseconds_per_element + static_cast<double>(part) * late);
      while (now() - begin < due) {
      }
    }
    __syncthreads();
  }
}

template <class Element>
cudaError_t fill_random(void* to, std::size_t count, std::uint32_t seed, cudaStream_t on) {
  fill<<<1024, 256, 0, on>>>(static_cast<Element*>(to), count, seed);
  return cudaGetLastError();
}

}  // namespace

namespace stretto::bench {

cudaError_t launch_nothing(cudaStream_t on) {
  nothing<<<1, 32, 0, on>>>();
  return cudaGetLastError();
}

cudaError_t launch_delay(std::uint64_t nanoseconds, cudaStream_t on) {
  delay<<<1, 1, 0, on>>>(nanoseconds);
  return cudaGetLastError();
}

cudaError_t launch_clock_reading(clock_reading* to, std::uint64_t nanoseconds, cudaStream_t on) {
  read_clock<<<1, 1, 0, on>>>(to, nanoseconds);
  return cudaGetLastError();
}

cudaError_t launch_timer_step(std::uint64_t* to, std::uint64_t nanoseconds, cudaStream_t on) {
  find_timer_step<<<1, 1, 0, on>>>(to, nanoseconds);
  return cudaGetLastError();
}

cudaError_t fill_random_floats(void* to, std::size_t count, std::uint32_t seed, cudaStream_t on) {
  return fill_random<float>(to, count, seed, on);
}

cudaError_t fill_random_bf16(void* to, std::size_t count, std::uint32_t seed, cudaStream_t on) {
  return fill_random<__nv_bfloat16>(to, count, seed, on);
}

cudaError_t launch_link(const link_message& what, cudaEvent_t begun, cudaStream_t on) {
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config{};
  config.attrs = attributes;
  if (what.cluster > 1) {
    cudaLaunchAttribute& together = attributes[config.numAttrs++];
    together.id = cudaLaunchAttributeClusterDimension;
    together.val.clusterDim = {static_cast<unsigned>(what.cluster), 1, 1};
  }
  if (begun != nullptr) {
    cudaLaunchAttribute& tells = attributes[config.numAttrs++];
    tells.id = cudaLaunchAttributeLaunchCompletionEvent;
    tells.val.launchCompletionEvent.event = begun;
  }
  config.gridDim = dim3(static_cast<unsigned>(what.blocks));
  config.blockDim = dim3(link_threads);
  config.dynamicSmemBytes = link_shared_bytes;
  config.stream = on;
  return cudaLaunchKernelEx(&config, link, static_cast<uint4*>(what.to),
                            static_cast<const uint4*>(what.from), what.bytes / sizeof(uint4),
                            sizeof(uint4) / what.bytes_per_nanosecond, what.late_nanoseconds,
                            what.seed);
}

}  // namespace stretto::bench
