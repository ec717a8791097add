// How the kernels are launched.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "cuda/kernels.hpp"

namespace train::cuda {

//! Enqueues a kernel's work on the stream: `count` items, or `count` rows of about `width` columns.
//! @throws stretto::executor::cuda::error when the launch fails
template <class Kernel>
void launch_items(const Kernel& kernel, std::size_t count, cudaStream_t stream);
template <class Kernel>
void launch_rows(const Kernel& kernel, std::size_t count, std::size_t width, cudaStream_t stream);

//! A kernel as the CUDA runtime knows it, and the same work done by the host: for a driver that
//! only looks like a GPU's.
struct twin {
  const void* kernel;
  std::vector<std::size_t> parameters;  //!< their sizes
  void (*on_host)(void* const* arguments);
};
std::vector<twin> twins();

}  // namespace train::cuda
