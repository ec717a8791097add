#include "sum_members.hpp"

namespace {

template <class Element>
__device__ void sum(const stretto::executor::cuda::member_list& members, long long elements,
                    long long part) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; at < elements;
       at += stride) {
    Element total = static_cast<const Element*>(members.data[0])[at];
    for (int other = 1; other < members.count; ++other)
      total += static_cast<const Element*>(members.data[other])[at];
    const int first = part > 0 ? static_cast<int>(at / part) : 0;
    const int end = part > 0 ? first + 1 : members.count;
    for (int other = first; other < end; ++other)
      static_cast<Element*>(members.data[other])[at] = total;
  }
}

}  // namespace

extern "C" __global__ void stretto_sum_floats(stretto::executor::cuda::member_list members,
                                              long long elements, long long part) {
  sum<float>(members, elements, part);
}

extern "C" __global__ void stretto_sum_doubles(stretto::executor::cuda::member_list members,
                                               long long elements, long long part) {
  sum<double>(members, elements, part);
}
