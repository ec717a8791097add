#include "sum_members.hpp"

namespace {

template <class Element>
__device__ void sum(const stretto::executor::cuda::member_list& members, long long elements) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; at < elements;
       at += stride) {
    Element total = static_cast<const Element*>(members.data[0])[at];
    for (int other = 1; other < members.count; ++other)
      total += static_cast<const Element*>(members.data[other])[at];
    for (int other = 0; other < members.count; ++other)
      static_cast<Element*>(members.data[other])[at] = total;
  }
}

}  // namespace

extern "C" __global__ void stretto_sum_floats(stretto::executor::cuda::member_list members,
                                              long long elements) {
  sum<float>(members, elements);
}

extern "C" __global__ void stretto_sum_doubles(stretto::executor::cuda::member_list members,
                                               long long elements) {
  sum<double>(members, elements);
}
