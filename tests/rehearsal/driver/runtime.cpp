// What benchmarks and tests of a GPU call of the CUDA runtime beside the executor: functions that
// wait, that call the host back, that take memory behind a stream. Here they may.
#include <algorithm>
#include <cstring>
#include <future>
#include <memory>

#include "cuda/driver/calls.hpp"

using namespace stretto::test::gpu;

namespace {

// A small GPU: what the benchmarks ask for by its size is then soon there.
constexpr std::size_t memory = std::size_t{1} << 30;

void finish(cudaStream_t stream) {
  while (true) {
    const guard lock(here().mutex);
    if (stream->queue.empty()) return;
    here().skip();
  }
}

}  // namespace

extern "C" {

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  {
    const guard lock(here().mutex);
    if (const cudaError_t code = here().enter(__func__, text_of(stream))) return code;
  }
  finish(stream);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const guard lock(here().mutex);
  if (!is_right_copy(__func__, to, from, bytes, kind)) return cudaErrorInvalidValue;
  std::memcpy(to, from, bytes);
  return here().enter(__func__, "");
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  const guard lock(here().mutex);
  // On a thread of its own: it may wait for one that asks for the stream.
  here().push(stream, {operation::kind::transfer,
                       [=, called = std::shared_ptr<std::future<void>>()]() mutable {
                         if (!called)
                           called = std::make_shared<std::future<void>>(
                               std::async(std::launch::async, function, argument));
                         return called->wait_for(std::chrono::seconds(0)) ==
                                std::future_status::ready;
                       },
                       nullptr, 0, {}});
  return here().enter(__func__, text_of(stream));
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* to, int) {
  *to = {};
  std::strcpy(to->name, "simulated GPU");
  to->major = 9;
  to->multiProcessorCount = 132;
  to->l2CacheSize = 1 << 20;
  to->totalGlobalMem = memory;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* all) {
  const guard lock(here().mutex);
  std::size_t taken = 0;
  for (const allocation& each : here().memory)
    if (each.bytes && !each.pinned && each.device == current) taken += each.size;
  *free = memory - std::min(memory, taken);
  *all = memory;
  return cudaSuccess;
}

// Pools have all memory, and give some from it.
cudaError_t cudaMemPoolCreate(cudaMemPool_t* made, const cudaMemPoolProps*) {
  *made = reinterpret_cast<cudaMemPool_t>(&here());
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return cudaSuccess;
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t) {
  return cudaSuccess;
}
cudaError_t cudaMallocFromPoolAsync(void** to, std::size_t, cudaMemPool_t from, cudaStream_t) {
  *to = from;
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void*, cudaStream_t) {
  return cudaSuccess;
}

}  // extern "C"
