#include "copies.hpp"

#include <algorithm>

#include "copy_bytes.hpp"
#include "current_device.hpp"
#include "stretto/executor/cuda/error.hpp"
#include "stretto/executor/cuda/handles.hpp"

namespace stretto::executor::cuda {
namespace {

bool is_aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}

void launch(void* to, const void* from, std::int64_t bytes, const stream_of_copy& on, int most) {
  constexpr std::int64_t warp = 32;
  constexpr std::int64_t most_threads = 512;
  const std::int64_t loads = (bytes + 15) / 16;
  const std::int64_t threads = std::min((loads + warp - 1) / warp * warp, most_threads);
  const std::int64_t blocks = std::min<std::int64_t>((loads + threads - 1) / threads, most);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = on.native;
  long long count = bytes;
  void* arguments[] = {static_cast<void*>(&to), static_cast<void*>(&from), &count};
  check(cudaSetDevice(on.gpu), "cudaSetDevice");  // as a stage's launches do
  check(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(stretto_copy_bytes), arguments),
        "cudaLaunchKernelExC");
}

}  // namespace

bool reach(int from, int to) {
  if (from == to) return true;
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, from, to), "cudaDeviceCanAccessPeer");
  if (can == 0) return false;
  const current_device guard(from);
  const cudaError_t status = cudaDeviceEnablePeerAccess(to, 0);
  const bool known = status == cudaErrorPeerAccessAlreadyEnabled;
  // A GPU reaches but so many others, and not from every kind of process.
  if (known || status == cudaErrorTooManyPeers || status == cudaErrorPeerAccessUnsupported) {
    static_cast<void>(cudaGetLastError());
    return known;
  }
  check(status, "cudaDeviceEnablePeerAccess");
  return true;
}

void copy(const side_of_copy<std::byte>& to, const side_of_copy<const std::byte>& from,
          std::int64_t bytes, const stream_of_copy& on, int blocks) {
  if (bytes == 0) return;
  const auto count = static_cast<std::size_t>(bytes);
  if (to.gpu != from.gpu && !is_captured(on.native)) {
    check(cudaMemcpyPeerAsync(to.data, to.gpu, from.data, from.gpu, count, on.native),
          "cudaMemcpyPeerAsync");
  } else if (to.gpu != from.gpu || to.gpu != on.gpu || !is_aligned(to.data) ||
             !is_aligned(from.data)) {
    // A graph takes no copy that names both GPUs: the addresses tell them.
    check(cudaMemcpyAsync(to.data, from.data, count, cudaMemcpyDefault, on.native),
          "cudaMemcpyAsync");
  } else {
    launch(to.data, from.data, bytes, on, blocks);
  }
}

}  // namespace stretto::executor::cuda
