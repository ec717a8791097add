#include "current_device.hpp"

#include <cuda.h>

#include "stretto/executor/cuda/driver_function.hpp"

namespace stretto::executor::cuda {

bool in_use(int number) {
  static auto* const state_of =
      driver_function<decltype(cuDevicePrimaryCtxGetState)>("cuDevicePrimaryCtxGetState", 7000);
  unsigned flags = 0;
  int active = 1;
  // The runtime numbers GPUs as the driver does.
  return state_of == nullptr || state_of(number, &flags, &active) != CUDA_SUCCESS || active != 0;
}

}  // namespace stretto::executor::cuda
