#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>
#include <vector>

#include "../../executor/cuda/src/sum_members.hpp"
#include "cuda/driver/simulated_gpu.hpp"

namespace stretto::test {

//! What the kernels of sum_members.cu do.
template <class Element>
void sum_on_host(void* const* arguments) {
  const auto& members = *static_cast<const executor::cuda::member_list*>(arguments[0]);
  const long long elements = *static_cast<const long long*>(arguments[1]);
  const long long part = *static_cast<const long long*>(arguments[2]);
  for (long long at = 0; at < elements; ++at) {
    Element total = static_cast<const Element*>(members.data[0])[at];
    for (int other = 1; other < members.count; ++other)
      total += static_cast<const Element*>(members.data[other])[at];
    for (int other = 0; other < members.count; ++other)
      if (part == 0 || other == at / part) static_cast<Element*>(members.data[other])[at] = total;
  }
}

inline std::vector<const void*> members_of(void* const* arguments) {
  const auto& members = *static_cast<const executor::cuda::member_list*>(arguments[0]);
  return std::vector<const void*>(members.data, members.data + members.count);
}

//! What that of copy_bytes.cu copies.
inline gpu::copied copy_of(void* const* arguments) {
  return {*static_cast<void* const*>(arguments[0]), *static_cast<const void* const*>(arguments[1]),
          static_cast<std::size_t>(*static_cast<const long long*>(arguments[2]))};
}
inline void copy_on_host(void* const* arguments) {
  const gpu::copied what = copy_of(arguments);
  std::memcpy(what.to, what.from, what.bytes);
}

//! What that of note_progress.cu does.
inline void note_on_host(void* const* arguments) {
  unsigned* const word = *static_cast<unsigned* const*>(arguments[0]);
  if (word != nullptr) std::atomic_ref(*word).store(*static_cast<const unsigned*>(arguments[1]));
}

//! The executor's own.
inline void define_executor_kernels() {
  const std::vector<std::size_t> sizes{sizeof(executor::cuda::member_list), sizeof(long long),
                                       sizeof(long long)};
  gpu::define("stretto_sum_floats", {sizes, sum_on_host<float>, {}, {}, {}, members_of});
  gpu::define("stretto_sum_doubles", {sizes, sum_on_host<double>, {}, {}, {}, members_of});
  gpu::define("stretto_copy_bytes",
              {{sizeof(void*), sizeof(void*), sizeof(long long)}, copy_on_host, {}, {}, copy_of});
  gpu::define("stretto_note_progress", {{sizeof(unsigned*), sizeof(unsigned)}, note_on_host});
}

}  // namespace stretto::test
