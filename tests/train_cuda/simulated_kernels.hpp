// The trainer's kernels, known to the simulated GPUs.
#pragma once

#include "cuda/driver/simulated_gpu.hpp"
#include "cuda/executor_kernels.hpp"
#include "cuda/launch.hpp"

namespace train_cuda_test {

//! And the executor's.
inline void define_kernels() {
  stretto::test::define_executor_kernels();
  for (const train::cuda::twin& each : train::cuda::twins())
    stretto::test::gpu::define(each.kernel, {each.parameters, each.on_host});
}

}  // namespace train_cuda_test
