#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace stretto::executor::cuda {

//! Has work of the one GPU reach the other's memory from now on. @return whether it can
bool reach(int from, int to);

//! Memory of a GPU.
template <class Byte>
struct side_of_copy {
  Byte* data = nullptr;
  int gpu = 0;
};
struct stream_of_copy {
  cudaStream_t native = nullptr;
  int gpu = 0;
};

//! Copies on a stream, of either's GPU or of a third one. Within its own GPU by a kernel, which the
//! host launches sooner than a copy of the runtime's, and which takes no more multiprocessors than
//! it may; between two GPUs directly where one reaches the other, else by way of the host.
//! @param blocks  of the kernel, at most
void copy(const side_of_copy<std::byte>& to, const side_of_copy<const std::byte>& from,
          std::int64_t bytes, const stream_of_copy& on, int blocks);

}  // namespace stretto::executor::cuda
