// doctest's main for tests that need a GPU: without one they are skipped, and say so.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "stretto/executor/cuda/device.hpp"

int main(int count, char** arguments) {
  if (stretto::executor::cuda_device_count() == 0) {
    std::puts("skipped: this process finds no GPU (cudaGetDeviceCount)");
    return 77;  // SKIP_RETURN_CODE
  }
  doctest::Context context(count, arguments);
  return context.run();
}
