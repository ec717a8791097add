#pragma once

// The matmul of the benchmark of overlap: cuBLAS's, of random numbers.

#include <cublas_v2.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "gpu.hpp"

namespace stretto::bench {

inline void check_cublas(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw std::runtime_error(std::string(call) + ": " + cublasGetStatusString(status));
}

struct matmul_shape {
  const char* type;
  cudaDataType_t element;
  int bytes;
  int m, n, k;
};
//! C = A B, by pieces of B's and C's columns.
class matmul {
 public:
  matmul(const matmul_shape& shape, cudaStream_t on) : shape_(shape) {
    cublasHandle_t made = nullptr;
    check_cublas(cublasCreate(&made), "cublasCreate");
    cublas_ = made;
    check_cublas(cublasSetStream(cublas_, on), "cublasSetStream");
    const auto fill = shape.element == CUDA_R_32F ? fill_random_floats : fill_random_bf16;
    const auto make = [&](int rows, int columns, std::uint32_t seed) {
      const std::size_t count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
      auto memory = make_device_memory(count * static_cast<std::size_t>(shape.bytes));
      check(fill(memory.get(), count, seed, on), "random numbers");
      return memory;
    };
    a_ = make(shape.m, shape.k, 1);
    b_ = make(shape.k, shape.n, 2);
    c_ = make(shape.m, shape.n, 3);
    check(cudaStreamSynchronize(on), "cudaStreamSynchronize");
  }
  ~matmul() { static_cast<void>(cublasDestroy(cublas_)); }
  matmul(const matmul&) = delete;
  matmul& operator=(const matmul&) = delete;

  //! @param multiprocessors  that it may take; 0: all
  void launch(int piece, int pieces, int multiprocessors) {
    const int first = shape_.n / pieces * piece;
    const int columns = piece + 1 == pieces ? shape_.n - first : shape_.n / pieces;
    const float one = 1;
    const float none = 0;
    check_cublas(cublasSetSmCountTarget(cublas_, multiprocessors), "cublasSetSmCountTarget");
    check_cublas(cublasGemmEx(cublas_, CUBLAS_OP_N, CUBLAS_OP_N, shape_.m, columns, shape_.k, &one,
                              a_.get(), shape_.element, shape_.m, column(b_, shape_.k, first),
                              shape_.element, shape_.k, &none, column(c_, shape_.m, first),
                              shape_.element, shape_.m, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                 "cublasGemmEx");
  }

 private:
  void* column(const executor::cuda::device_memory& of, int rows, int number) const {
    return static_cast<std::byte*>(of.get()) + static_cast<std::size_t>(rows) *
                                                   static_cast<std::size_t>(number) *
                                                   static_cast<std::size_t>(shape_.bytes);
  }
  matmul_shape shape_;
  cublasHandle_t cublas_ = nullptr;
  executor::cuda::device_memory a_, b_, c_;
};

}  // namespace stretto::bench
