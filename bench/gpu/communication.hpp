#pragma once

// What the benchmark of overlap puts beside its matmul.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <string>

#include "gpu.hpp"
#ifdef STRETTO_BENCH_NCCL
#include "lone_rank.hpp"
#endif

namespace stretto::bench {

//! What communicates: bytes from one buffer to another.
struct communication {
  std::string name;
  int blocks = 0;
  double rate = 0;  //!< GB/s that it keeps below; 0: as fast as it can
  bool gated = false;
  std::function<void(std::size_t bytes, cudaEvent_t begun, cudaStream_t on)> launch{};
  double late = 0;  //!< in microseconds, the most that a part of it is late
};

//! The two buffers of all communication, as large as there is room.
class message_room {
 public:
  //! @param cluster  blocks of each kernel here that begin together
  message_room(cudaStream_t on, int cluster) : cluster_(cluster) {
    std::size_t free = 0;
    std::size_t total = 0;
    check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    bytes_ = std::min<std::size_t>(std::size_t{4} << 30, free / 8);
    from_ = make_device_memory(bytes_);
    into_ = make_device_memory(bytes_);
    check(fill_random_floats(from_.get(), bytes_ / 4, 4, on), "random numbers");
    check(cudaStreamSynchronize(on), "cudaStreamSynchronize");
  }
  std::size_t bytes() const { return bytes_; }

  //! Of what is made here, each lives no longer than this.
  //! @param late  in microseconds, see link_message; by a seed that is always the same
  communication stand_in(double rate, int blocks, double late = 0) const {
    return {late > 0 ? "stand-in, late" : "stand-in",
            blocks,
            rate,
            true,
            [this, rate, blocks, late](std::size_t bytes, cudaEvent_t begun, cudaStream_t on) {
              check(launch_link(
                        {into_.get(), from_.get(), bytes, rate, blocks, cluster_, 1e3 * late, 5},
                        begun, on),
                    "the stand-in of a link");
            },
            late};
  }
#ifdef STRETTO_BENCH_NCCL
  //! @param blocks  that it was told, of which NCCL makes the next power of two
  communication by_nccl(const lone_rank& rank, int blocks) const {
    const auto held = static_cast<int>(std::bit_ceil(static_cast<unsigned>(blocks)));
    return {"NCCL to itself", held, 0, false,
            [this, &rank](std::size_t bytes, cudaEvent_t, cudaStream_t on) {
              rank.pass(from_.get(), into_.get(), bytes, on);
            }};
  }
#endif

 private:
  int cluster_;
  std::size_t bytes_ = 0;
  executor::cuda::device_memory from_, into_;
};

}  // namespace stretto::bench
