// Who computes a row: the threads of a block together, or on the host one thread alone.
#pragma once

#include <cstddef>

#include "model/everywhere.hpp"

namespace train::cuda {

//! One thread: kernels as they run where there is no GPU.
struct lone_team {
  template <class Use>
  TRAIN_EVERYWHERE void each(std::size_t count, Use use) const {
    for (std::size_t at = 0; at < count; ++at) use(at);
  }
  template <class Value, class Of>
  TRAIN_EVERYWHERE Value sum(std::size_t count, Of of) const {
    Value total{};
    for (std::size_t at = 0; at < count; ++at) total += of(at);
    return total;
  }
  //! Of at least one.
  template <class Of>
  TRAIN_EVERYWHERE float largest(std::size_t count, Of of) const {
    float found = of(0);
    for (std::size_t at = 1; at < count; ++at) found = of(at) > found ? of(at) : found;
    return found;
  }
  //! Whether this thread speaks for all.
  TRAIN_EVERYWHERE bool first() const { return true; }
  //! What each wrote before, all see behind it.
  TRAIN_EVERYWHERE void meet() const {}
};

#ifdef __CUDACC__
//! A block of threads, whole warps of them. All of them call the same functions in the same order
//! and get the same results. Sums have a fixed order.
struct block_team {
  template <class Use>
  __device__ void each(std::size_t count, Use use) const {
    for (std::size_t at = threadIdx.x; at < count; at += blockDim.x) use(at);
  }
  template <class Value, class Of>
  __device__ Value sum(std::size_t count, Of of) const {
    Value mine{};
    for (std::size_t at = threadIdx.x; at < count; at += blockDim.x) mine += of(at);
    return joined(mine, [](Value a, Value b) { return a + b; }, Value{});
  }
  template <class Of>
  __device__ float largest(std::size_t count, Of of) const {
    const float least = -1.0f / 0.0f;
    float mine = least;
    for (std::size_t at = threadIdx.x; at < count; at += blockDim.x) mine = fmaxf(mine, of(at));
    return joined(mine, [](float a, float b) { return fmaxf(a, b); }, least);
  }
  __device__ bool first() const { return threadIdx.x == 0; }
  __device__ void meet() const { __syncthreads(); }

 private:
  template <class Value, class Join>
  __device__ Value joined(Value mine, Join join, Value nothing) const {
    __shared__ Value parts[32];
    const auto in_warp = [&](Value value) {
      for (int distance = 16; distance > 0; distance /= 2)
        value = join(value, __shfl_xor_sync(0xffffffffu, value, distance));
      return value;
    };
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    mine = in_warp(mine);
    __syncthreads();  // the last call's parts have been read
    if (lane == 0) parts[warp] = mine;
    __syncthreads();
    return in_warp(lane < blockDim.x / 32 ? parts[lane] : nothing);
  }
};
#endif

}  // namespace train::cuda
