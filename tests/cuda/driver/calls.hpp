#pragma once

#include <string>

#include "state.hpp"

namespace stretto::test::gpu {

inline cudaError_t failed(cudaError_t code) {
  return last_error = code;
}

// Every function begins with it.
#define ENTER(arguments)      \
  state& my = here();         \
  const guard lock(my.mutex); \
  if (const cudaError_t code = my.enter(__func__, arguments)) return code

// And functions that ask, allocate or free with this.
#define FORBID_IN_CAPTURE \
  if (const cudaError_t forbidden = here().forbid(__func__)) return forbidden

inline std::string number(std::size_t value) {
  return std::to_string(value);
}
//! What is used when it is gone, which would be somebody else's by now, is a complaint besides.
template <class Handle>
bool is_alive(Handle of) {
  if (of == nullptr) return false;
  if (of->destroyed) here().complaints.push_back(text_of(of) + " is used when it is gone");
  return !of->destroyed;
}

//! Whether a copy's ends lie in memory that there is, as its kind says; else that is a complaint.
bool is_right_copy(const char* name, const void* to, const void* from, std::size_t bytes,
                   cudaMemcpyKind kind);

//! Whether work of the GPU reaches the memory; the host's it does.
bool reaches_memory(int gpu, const void* address);

//! In a capture what comes after it comes after what the stream has so far.
void record(cudaEvent_t event, cudaStream_t stream);

}  // namespace stretto::test::gpu
