// doctest's main for tests that need so many GPUs (STRETTO_NEEDED_GPUS): with fewer they are
// skipped, and say so.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "stretto/executor/cuda/device.hpp"

int main(int count, char** arguments) {
  // CUDA reads both at its first call alone, which is the count of GPUs. Streams that share a
  // queue, as they do of more than 8 otherwise, wait for one another.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  // A kernel that is loaded at its launch may wait for one that waits for it.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  constexpr int needed = STRETTO_NEEDED_GPUS;
  try {
    if (const int found = stretto::executor::cuda_device_count(); found < needed) {
      std::printf("skipped: GPUs needed: %d, found (cudaGetDeviceCount): %d\n", needed, found);
      return 77;  // SKIP_RETURN_CODE
    }
  } catch (const std::exception& wrong) {
    std::printf("failed: %s\n", wrong.what());
    return 1;
  }
  doctest::Context context(count, arguments);
  return context.run();
}
