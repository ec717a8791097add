#include <algorithm>

#include "cuda/launch.hpp"
#include "stretto/executor/cuda/error.hpp"

namespace train::cuda {
namespace {

constexpr std::size_t item_threads = 256;
constexpr std::size_t most_blocks = 1 << 16;
constexpr std::size_t most_row_threads = 1024;

// Both kinds of kernel loop, since a grid may be smaller than the work.
template <class Kernel>
__global__ void items(Kernel kernel, std::size_t count) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t item = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; item < count;
       item += step)
    kernel(item);
}

// With the bounds, or a compiler may give threads more registers than so many of them find.
template <class Kernel>
__global__ void __launch_bounds__(most_row_threads) rows(Kernel kernel, std::size_t count) {
  for (std::size_t row = blockIdx.x; row < count; row += gridDim.x) kernel(block_team{}, row);
}

template <class Kernel>
void items_on_host(void* const* arguments) {
  const auto& kernel = *static_cast<const Kernel*>(arguments[0]);
  const std::size_t count = *static_cast<const std::size_t*>(arguments[1]);
  for (std::size_t item = 0; item < count; ++item) kernel(item);
}

template <class Kernel>
void rows_on_host(void* const* arguments) {
  const auto& kernel = *static_cast<const Kernel*>(arguments[0]);
  const std::size_t count = *static_cast<const std::size_t*>(arguments[1]);
  for (std::size_t row = 0; row < count; ++row) kernel(lone_team{}, row);
}

template <class... Kernel>
void add_items(std::vector<twin>& to, kernel_list<Kernel...>) {
  (to.push_back({reinterpret_cast<const void*>(&items<Kernel>),
                 {sizeof(Kernel), sizeof(std::size_t)},
                 items_on_host<Kernel>}),
   ...);
}
template <class... Kernel>
void add_rows_of(std::vector<twin>& to, kernel_list<Kernel...>) {
  (to.push_back({reinterpret_cast<const void*>(&rows<Kernel>),
                 {sizeof(Kernel), sizeof(std::size_t)},
                 rows_on_host<Kernel>}),
   ...);
}

}  // namespace

template <class Kernel>
void launch_items(const Kernel& kernel, std::size_t count, cudaStream_t stream) {
  if (count == 0) return;
  const std::size_t blocks = std::min((count + item_threads - 1) / item_threads, most_blocks);
  items<<<static_cast<unsigned>(blocks), item_threads, 0, stream>>>(kernel, count);
  stretto::executor::cuda::check(cudaGetLastError(), "the launch of a kernel over items");
}

template <class Kernel>
void launch_rows(const Kernel& kernel, std::size_t count, std::size_t width, cudaStream_t stream) {
  if (count == 0) return;
  // About four columns a thread, in whole warps.
  const std::size_t threads =
      std::clamp((width / 4 + 31) / 32 * 32, std::size_t{32}, most_row_threads);
  rows<<<static_cast<unsigned>(std::min(count, most_blocks)), static_cast<unsigned>(threads), 0,
         stream>>>(kernel, count);
  stretto::executor::cuda::check(cudaGetLastError(), "the launch of a kernel over rows");
}

std::vector<twin> twins() {
  std::vector<twin> all;
  add_items(all, item_kernels{});
  add_rows_of(all, row_kernels{});
  return all;
}

template void launch_items(const add_bias<float>&, std::size_t, cudaStream_t);
template void launch_items(const add_bias<bfloat16>&, std::size_t, cudaStream_t);
template void launch_items(const round&, std::size_t, cudaStream_t);
template void launch_items(const round_batch&, std::size_t, cudaStream_t);
template void launch_items(const residual<float, float>&, std::size_t, cudaStream_t);
template void launch_items(const residual<bfloat16, bfloat16>&, std::size_t, cudaStream_t);
template void launch_items(const residual<bfloat16, float>&, std::size_t, cudaStream_t);
template void launch_items(const multiply<float>&, std::size_t, cudaStream_t);
template void launch_items(const multiply<bfloat16>&, std::size_t, cudaStream_t);
template void launch_items(const gelu<float>&, std::size_t, cudaStream_t);
template void launch_items(const gelu<bfloat16>&, std::size_t, cudaStream_t);
template void launch_items(const add_rows<float>&, std::size_t, cudaStream_t);
template void launch_items(const add_rows<bfloat16>&, std::size_t, cudaStream_t);
template void launch_items(const norm_weights<float>&, std::size_t, cudaStream_t);
template void launch_items(const norm_weights<bfloat16>&, std::size_t, cudaStream_t);
template void launch_items(const embed<float>&, std::size_t, cudaStream_t);
template void launch_items(const embed<bfloat16>&, std::size_t, cudaStream_t);
template void launch_items(const add_parts&, std::size_t, cudaStream_t);
template void launch_items(const embed_tokens<float>&, std::size_t, cudaStream_t);
template void launch_items(const embed_tokens<bfloat16>&, std::size_t, cudaStream_t);
template void launch_items(const embed_positions<float>&, std::size_t, cudaStream_t);
template void launch_items(const embed_positions<bfloat16>&, std::size_t, cudaStream_t);
template void launch_items(const add&, std::size_t, cudaStream_t);
template void launch_items(const summed_loss&, std::size_t, cudaStream_t);
template void launch_items(const update&, std::size_t, cudaStream_t);
template void launch_items(const finish&, std::size_t, cudaStream_t);
template void launch_rows(const norm<float, float>&, std::size_t, std::size_t, cudaStream_t);
template void launch_rows(const norm<bfloat16, bfloat16>&, std::size_t, std::size_t, cudaStream_t);
template void launch_rows(const norm<float, bfloat16>&, std::size_t, std::size_t, cudaStream_t);
template void launch_rows(const norm_back<float>&, std::size_t, std::size_t, cudaStream_t);
template void launch_rows(const norm_back<bfloat16>&, std::size_t, std::size_t, cudaStream_t);
template void launch_rows(const softmax<float>&, std::size_t, std::size_t, cudaStream_t);
template void launch_rows(const softmax<bfloat16>&, std::size_t, std::size_t, cudaStream_t);
template void launch_rows(const softmax_back<float>&, std::size_t, std::size_t, cudaStream_t);
template void launch_rows(const softmax_back<bfloat16>&, std::size_t, std::size_t, cudaStream_t);
template void launch_rows(const cross_entropy<float>&, std::size_t, std::size_t, cudaStream_t);
template void launch_rows(const cross_entropy<bfloat16>&, std::size_t, std::size_t, cudaStream_t);
template void launch_rows(const row_sums&, std::size_t, std::size_t, cudaStream_t);
template void launch_rows(const logits_back<float>&, std::size_t, std::size_t, cudaStream_t);
template void launch_rows(const logits_back<bfloat16>&, std::size_t, std::size_t, cudaStream_t);
template void launch_rows(const add_losses&, std::size_t, std::size_t, cudaStream_t);
template void launch_rows(const add_squares&, std::size_t, std::size_t, cudaStream_t);
template void launch_rows(const add_squared&, std::size_t, std::size_t, cudaStream_t);

}  // namespace train::cuda
