#pragma once

// Counts what the program calls of the CUDA runtime of the functions that allocate or wait and that
// the executor or a stage like the tests' could call: they stand here once more, before the
// runtime's own, and pass on what they are given. For one file of a program.

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstddef>

namespace stretto::test {

//! Calls since the program began.
struct cuda_calls {
  long allocations = 0;       //!< of a GPU's memory or pinned memory of the host; given back, too
  long synchronisations = 0;  //!< that wait for a GPU, a stream or an event
  std::size_t device_bytes = 0;  //!< asked for, of GPUs' memory
};
inline cuda_calls counted;

//! The runtime's own function, or that of what is loaded before it.
template <class Function>
Function* next_of(Function*, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace stretto::test

#define STRETTO_PASS_ON(name, ...)                              \
  static const auto own = stretto::test::next_of(&name, #name); \
  return own == nullptr ? cudaErrorSharedObjectSymbolNotFound : own(__VA_ARGS__)

extern "C" {

cudaError_t cudaMalloc(void** to, std::size_t bytes) {
  ++stretto::test::counted.allocations;
  stretto::test::counted.device_bytes += bytes;
  STRETTO_PASS_ON(cudaMalloc, to, bytes);
}
cudaError_t cudaMallocAsync(void** to, std::size_t bytes, cudaStream_t on) {
  ++stretto::test::counted.allocations;
  stretto::test::counted.device_bytes += bytes;
  STRETTO_PASS_ON(cudaMallocAsync, to, bytes, on);
}
cudaError_t cudaMallocHost(void** to, std::size_t bytes) {
  ++stretto::test::counted.allocations;
  STRETTO_PASS_ON(cudaMallocHost, to, bytes);
}
cudaError_t cudaHostAlloc(void** to, std::size_t bytes, unsigned flags) {
  ++stretto::test::counted.allocations;
  STRETTO_PASS_ON(cudaHostAlloc, to, bytes, flags);
}
cudaError_t cudaFree(void* memory) {
  ++stretto::test::counted.allocations;
  STRETTO_PASS_ON(cudaFree, memory);
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t on) {
  ++stretto::test::counted.allocations;
  STRETTO_PASS_ON(cudaFreeAsync, memory, on);
}
cudaError_t cudaFreeHost(void* memory) {
  ++stretto::test::counted.allocations;
  STRETTO_PASS_ON(cudaFreeHost, memory);
}
cudaError_t cudaDeviceSynchronize() {
  ++stretto::test::counted.synchronisations;
  STRETTO_PASS_ON(cudaDeviceSynchronize);
}
cudaError_t cudaStreamSynchronize(cudaStream_t on) {
  ++stretto::test::counted.synchronisations;
  STRETTO_PASS_ON(cudaStreamSynchronize, on);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  ++stretto::test::counted.synchronisations;
  STRETTO_PASS_ON(cudaEventSynchronize, event);
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  ++stretto::test::counted.synchronisations;
  STRETTO_PASS_ON(cudaMemcpy, to, from, bytes, kind);
}

}  // extern "C"

#undef STRETTO_PASS_ON
