#pragma once

#include <cuda_runtime_api.h>

#include <optional>

#include "stretto/executor/cuda/error.hpp"

namespace stretto::executor::cuda {

//! Whether somebody has begun to use the GPU. What begins with it takes some 500 MB of its memory,
//! for as long as the process lives.
bool in_use(int number);

//! Makes a GPU current, and the one before again, unless nobody uses that: a thread that has chosen
//! none has GPU 0, which may be another process's.
class current_device {
 public:
  explicit current_device(int number) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    check(cudaSetDevice(number), "cudaSetDevice");
    if (before_ == number || !in_use(before_)) before_ = -1;
  }
  ~current_device() {
    if (before_ >= 0) static_cast<void>(cudaSetDevice(before_));
  }
  current_device(const current_device&) = delete;
  current_device& operator=(const current_device&) = delete;

 private:
  int before_ = 0;
};

//! The same where nothing may be thrown: of a GPU that has failed nothing more begins.
inline void make_current(std::optional<current_device>& held, int number) noexcept {
  try {
    held.emplace(number);
  } catch (const error&) {
    held.reset();
  }
}

//! For a thread that asks CUDA for something: were it to have chosen no GPU, that would begin to
//! use GPU 0. What the thread chooses later is its own affair.
inline void choose_once(int number) {
  static thread_local bool chosen = false;
  if (chosen) [[likely]]
    return;
  check(cudaSetDevice(number), "cudaSetDevice");
  chosen = true;
}

}  // namespace stretto::executor::cuda
