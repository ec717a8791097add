#pragma once

#include <cuda_runtime_api.h>

namespace stretto::executor::cuda {

//! A function of the driver, with which a program need not be linked; null: this driver has none.
//! @param since  the CUDA whose form of it is meant
template <class Function>
Function* driver_function(const char* name, [[maybe_unused]] unsigned since) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
#if CUDART_VERSION >= 12050
  const cudaError_t code =
      cudaGetDriverEntryPointByVersion(name, &found, since, cudaEnableDefault, &result);
#else
  const cudaError_t code = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result);
#endif
  if (code != cudaSuccess) static_cast<void>(cudaGetLastError());  // no launch's
  const bool known = code == cudaSuccess && result == cudaDriverEntryPointSuccess;
  return known ? reinterpret_cast<Function*>(found) : nullptr;
}

}  // namespace stretto::executor::cuda
