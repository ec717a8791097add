#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>

namespace stretto::executor::cuda {

//! Whether every later call of the process fails with the same code, so that only a new process can
//! use the GPU again (as driver_types.h says of each code).
bool is_sticky(cudaError_t code) noexcept;

//! A call of the CUDA runtime that failed. what() names the call, the code by name and number and
//! CUDA's text, and says when the process must be started anew. A failed kernel is often reported
//! by a later call.
class error : public std::runtime_error {
 public:
  error(cudaError_t code, const char* call);

  cudaError_t code() const { return code_; }
  bool sticky() const { return is_sticky(code_); }

 private:
  cudaError_t code_;
};

//! @throws error unless the status is a success
inline void check(cudaError_t status, const char* call) {
  if (status != cudaSuccess) [[unlikely]]
    throw error(status, call);
}

//! What a query of an event or a stream says: whether all is done there. That it is not, CUDA keeps
//! as the thread's last error, which whoever launches next would find: it is taken away.
//! @throws error of any other status
inline bool is_over(cudaError_t status, const char* call) {
  if (status != cudaErrorNotReady) {
    check(status, call);
    return true;
  }
  static_cast<void>(cudaGetLastError());
  return false;
}

}  // namespace stretto::executor::cuda
