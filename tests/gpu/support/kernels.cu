#include "kernels.hpp"

namespace {

__global__ void spin(const volatile int* flag) {
  while (*flag != 0) {
  }
}

__device__ unsigned long long now() {
  unsigned long long value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value));
  return value;
}

__global__ void delay(unsigned long long nanoseconds) {
  const unsigned long long begin = now();
  while (now() - begin < nanoseconds) {
  }
}

__global__ void fault() {
  *reinterpret_cast<volatile int*>(16) = 1;
}

}  // namespace

namespace stretto::test {

cudaError_t launch_spin(const int* flag, cudaStream_t on) {
  spin<<<1, 1, 0, on>>>(flag);
  return cudaGetLastError();
}

cudaError_t launch_delay(std::uint64_t nanoseconds, cudaStream_t on) {
  delay<<<1, 1, 0, on>>>(nanoseconds);
  return cudaGetLastError();
}

cudaError_t launch_fault(cudaStream_t on) {
  fault<<<1, 1, 0, on>>>();
  return cudaGetLastError();
}

}  // namespace stretto::test
