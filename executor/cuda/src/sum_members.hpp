#pragma once

namespace stretto::executor::cuda {

inline constexpr int most_members = 64;

//! Buffers that a kernel sums, in this order.
struct member_list {
  void* data[most_members];
  int count;
};

}  // namespace stretto::executor::cuda

// Kernels: every member's elements become the sum over all members, added one after the other;
// with `part` above 0 those of the k-th member from k * part to before (k + 1) * part alone, of as
// many in all as are given. To be launched by their addresses; any number of blocks and threads.
extern "C" {
#if defined(__CUDACC__)
__global__
#endif
    void
    stretto_sum_floats(stretto::executor::cuda::member_list members, long long elements,
                       long long part);
#if defined(__CUDACC__)
__global__
#endif
    void
    stretto_sum_doubles(stretto::executor::cuda::member_list members, long long elements,
                        long long part);
}
