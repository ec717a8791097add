#pragma once

#include <cuda_runtime_api.h>

#include "stretto/executor/cuda/error.hpp"

namespace stretto::executor::cuda {

//! Makes a GPU current, and the one before again.
class current_device {
 public:
  explicit current_device(int number) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    check(cudaSetDevice(number), "cudaSetDevice");
  }
  ~current_device() { static_cast<void>(cudaSetDevice(before_)); }
  current_device(const current_device&) = delete;
  current_device& operator=(const current_device&) = delete;

 private:
  int before_ = 0;
};

}  // namespace stretto::executor::cuda
