#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace stretto::test {

//! Launches a kernel that ends when the flag, in the host's memory, which the GPU reaches, is none.
cudaError_t launch_spin(const int* flag, cudaStream_t on);

//! Launches a kernel that lasts so long, and not less.
cudaError_t launch_delay(std::uint64_t nanoseconds, cudaStream_t on);

//! Launches a kernel that writes where nothing is.
cudaError_t launch_fault(cudaStream_t on);

}  // namespace stretto::test
