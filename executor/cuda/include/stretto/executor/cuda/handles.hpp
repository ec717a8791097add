#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <utility>

#include "stretto/executor/cuda/error.hpp"

namespace stretto::executor::cuda {

//! What CUDA handed out and takes back, once.
template <class Handle, cudaError_t (*Destroy)(Handle)>
class owned {
 public:
  owned() = default;
  explicit owned(Handle handle) : handle_(handle) {}
  owned(owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  owned& operator=(owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~owned() {
    // After a sticky error nothing can be given back, nor need it be.
    if (handle_ != nullptr) static_cast<void>(Destroy(handle_));
  }

  Handle get() const { return handle_; }
  //! Not given back any more.
  Handle release() { return std::exchange(handle_, nullptr); }

 private:
  Handle handle_ = nullptr;
};

using owned_stream = owned<cudaStream_t, cudaStreamDestroy>;
using owned_event = owned<cudaEvent_t, cudaEventDestroy>;
using device_memory = owned<void*, cudaFree>;
using pinned_memory = owned<void*, cudaFreeHost>;

//! Of the current device; they do not wait for the default stream. Lower numbers are more urgent.
inline owned_stream make_stream(int priority) {
  cudaStream_t made = nullptr;
  check(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, priority),
        "cudaStreamCreateWithPriority");
  return owned_stream(made);
}
//! Whether what comes to the stream is recorded into a graph.
inline bool is_captured(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}
//! An event with times costs several times what one without does.
inline owned_event make_event(bool timing = false) {
  cudaEvent_t made = nullptr;
  check(cudaEventCreateWithFlags(&made, timing ? cudaEventDefault : cudaEventDisableTiming),
        "cudaEventCreateWithFlags");
  return owned_event(made);
}
inline device_memory make_device_memory(std::size_t bytes) {
  void* made = nullptr;
  if (bytes > 0) check(cudaMalloc(&made, bytes), "cudaMalloc");
  return device_memory(made);
}
//! On the host; copies from and to it run beside kernels.
inline pinned_memory make_pinned_memory(std::size_t bytes) {
  void* made = nullptr;
  if (bytes > 0) check(cudaHostAlloc(&made, bytes, cudaHostAllocDefault), "cudaHostAlloc");
  return pinned_memory(made);
}

}  // namespace stretto::executor::cuda
