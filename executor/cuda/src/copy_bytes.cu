#include "copy_bytes.hpp"

namespace {

//! Of a thread's loads, before the first of them is stored: enough that few blocks keep memory
//! busy.
constexpr int in_flight = 8;

}  // namespace

extern "C" __global__ void stretto_copy_bytes(void* to, const void* from, long long bytes) {
  const long long count = bytes / static_cast<long long>(sizeof(uint4));
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  const long long mine = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  auto* const into = static_cast<uint4*>(to);
  const auto* const out_of = static_cast<const uint4*>(from);
  for (long long first = mine; first < count; first += in_flight * stride) {
    uint4 held[in_flight];
#pragma unroll
    for (int piece = 0; piece < in_flight; ++piece)
      if (first + piece * stride < count) held[piece] = __ldcs(out_of + first + piece * stride);
#pragma unroll
    for (int piece = 0; piece < in_flight; ++piece)
      if (first + piece * stride < count) into[first + piece * stride] = held[piece];
  }
  // What is left is less than one load.
  const long long rest = count * static_cast<long long>(sizeof(uint4)) + mine;
  if (rest < bytes) static_cast<char*>(to)[rest] = static_cast<const char*>(from)[rest];
}
