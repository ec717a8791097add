// A consumer of the CUDA executor: linking is what is tested, a GPU need not be there.
#include <cstdio>

#include "stretto/executor/cuda/device.hpp"

int main() {
  std::printf("%d GPUs\n", stretto::executor::cuda_device_count());
  return 0;
}
