// What a math on a GPU is made of. Internal.
#pragma once

#include <cublas_v2.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>

#include "cuda/cuda_math.hpp"
#include "cuda/matrix.hpp"
#include "stretto/executor/cuda/error.hpp"
#include "stretto/executor/cuda/handles.hpp"

namespace train::cuda {

inline void check_products(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(call) + " failed: " + cublasGetStatusString(status) +
                             " (" + std::to_string(static_cast<int>(status)) + ")");
}

template <class Value>
matrix_on_gpu<Value> on_gpu(const matrix_span<Value>& of) {
  return {of.data, of.columns, of.stride};
}
inline std::size_t items(const auto& of) {
  return of.rows * of.columns;
}

//! What NVIDIA recommends since Hopper.
inline constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

//! How much is summed in parts: few rows each, so that all columns of them keep a GPU busy, and of
//! values what takes a block longer than its launch.
inline parts_of_many parts_of_rows(std::size_t rows) {
  return parts_of_many::about(8, 64, rows);
}
inline parts_of_many parts_of_values(std::size_t count) {
  return parts_of_many::about(8192, 1024, count);
}
//! What all of them take, of one matrix or two.
inline std::size_t sums_bytes(std::size_t columns) {
  return std::max(parts_of_rows(SIZE_MAX).parts * columns * 2 * sizeof(float),
                  parts_of_values(SIZE_MAX).parts * sizeof(double));
}

//! Of whoever waits for a copy outside a step.
inline constexpr std::chrono::seconds patience{60};

struct cuda_math::parts {
  int gpu = 0;  // to which cuBLAS keeps from its making to its end
  cublasHandle_t products = nullptr;
  stretto::executor::cuda::device_memory workspace, row_losses;
  stretto::executor::cuda::device_memory sums;  // of parts, see parts_of_many
  std::size_t vocabulary = 0;
  stretto::executor::cuda::owned_stream aside;  // for what is done outside steps
  cudaStream_t stream = nullptr;
  int multiprocessors = 0;
  // Where both sides of a product are rounded; empty where they are not.
  stretto::executor::cuda::device_memory left, right;
  std::size_t room = 0;  // scalars of either
  bool rounds = false;
  // See math::room().
  stretto::executor::cuda::device_memory rooms[math<float>::rooms];
  std::size_t room_sizes[math<float>::rooms] = {};  // scalars of each

  ~parts() {
    if (products == nullptr) return;
    static_cast<void>(cudaSetDevice(gpu));
    static_cast<void>(cublasDestroy(products));
  }

  //! Until the stream's work is done.
  void finish_aside() const {
    const auto limit = std::chrono::steady_clock::now() + patience;
    while (!stretto::executor::cuda::is_over(cudaStreamQuery(aside.get()), "cudaStreamQuery")) {
      if (std::chrono::steady_clock::now() > limit)
        throw std::runtime_error("a copy to or from the GPU has not ended within " +
                                 std::to_string(patience.count()) + " s");
      std::this_thread::yield();
    }
  }
};

}  // namespace train::cuda
