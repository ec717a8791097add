// What simulated GPUs say of copies and sets that real ones would carry out, or not, without a
// word: beyond the memory that they were given, the wrong way, or when it is gone.
#include <doctest/doctest.h>

#include <cstddef>
#include <functional>
#include <string>

#include "driver/simulated_gpu.hpp"
#include "executor/failures.hpp"
#include "stretto/executor/cuda/handles.hpp"

using namespace stretto;
using namespace stretto::test;
using executor::cuda::device_memory;
using executor::cuda::make_device_memory;
using executor::cuda::make_pinned_memory;
using executor::cuda::make_stream;

namespace {

//! What it says first; empty: nothing.
std::string complaint_of(const std::function<cudaError_t(std::byte* of_gpu, std::byte* of_host,
                                                         cudaStream_t on)>& call) {
  gpu::reset(1, 2);
  const auto stream = make_stream(0);
  const auto here = make_device_memory(64);
  const auto pinned = make_pinned_memory(64);
  const cudaError_t code = call(static_cast<std::byte*>(here.get()),
                                static_cast<std::byte*>(pinned.get()), stream.get());
  CHECK((code == cudaSuccess) == gpu::complaints().empty());
  return gpu::complaints().empty() ? "" : gpu::complaints().front();
}

}  // namespace

TEST_CASE("copies and sets lie in the memory that they name, as their kinds say") {
  const auto copy = [](int to, int from, std::size_t bytes, cudaMemcpyKind kind) {
    return complaint_of([=](std::byte* of_gpu, std::byte* of_host, cudaStream_t on) {
      static std::byte pageable[64];
      std::byte* const all[] = {of_gpu, of_host, pageable};
      return cudaMemcpyAsync(all[to] + 32, all[from], bytes, kind, on);
    });
  };
  for (const cudaMemcpyKind kind : {cudaMemcpyDefault, cudaMemcpyHostToDevice}) {
    CHECK(copy(0, 1, 32, kind) == "");
    CHECK(copy(0, 2, 32, kind) == "");
    CHECK(copy(0, 1, 33, kind) ==
          "cudaMemcpyAsync: memory 0+32, 33 bytes, is longer than what it lies in");
  }
  CHECK(copy(0, 0, 32, cudaMemcpyDeviceToDevice) == "");
  CHECK(copy(1, 0, 32, cudaMemcpyDeviceToHost) == "");
  CHECK(copy(1, 0, 32, cudaMemcpyHostToDevice) ==
        "cudaMemcpyAsync: memory 1+32, 32 bytes, is no GPU's");
  CHECK(copy(0, 1, 32, cudaMemcpyDeviceToHost) ==
        "cudaMemcpyAsync: memory 0+32, 32 bytes, is a GPU's");
  CHECK(copy(0, 2, 32, cudaMemcpyDeviceToDevice) ==
        "cudaMemcpyAsync: memory of the host, 32 bytes, is no GPU's");
  const auto between = [](int to, int from) {
    return complaint_of([=](std::byte* of_gpu, std::byte*, cudaStream_t on) {
      return cudaMemcpyPeerAsync(of_gpu + 32, to, of_gpu, from, 32, on);
    });
  };
  CHECK(between(0, 0) == "");
  CHECK(between(1, 0) == "cudaMemcpyPeerAsync: memory 0+32, 32 bytes, is another GPU's");
  CHECK(complaint_of([](std::byte* of_gpu, std::byte*, cudaStream_t on) {
          return cudaMemsetAsync(of_gpu + 1, 0, 64, on);
        }) == "cudaMemsetAsync: memory 0+1, 64 bytes, is longer than what it lies in");
}

TEST_CASE("a graph's copies find their memory when it runs, and its sets are of GPUs' alone") {
  gpu::reset();
  const auto stream = make_stream(0);
  const auto kept = make_device_memory(8);
  const auto pinned = make_pinned_memory(8);
  cudaGraph_t made = nullptr;
  cudaGraphExec_t ready = nullptr;
  {
    const auto given_back = make_device_memory(8);
    REQUIRE(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    CHECK(cudaMemcpyAsync(kept.get(), given_back.get(), 8, cudaMemcpyDeviceToDevice,
                          stream.get()) == cudaSuccess);
    CHECK(cudaMemsetAsync(pinned.get(), 0, 8, stream.get()) == cudaErrorInvalidValue);
    REQUIRE(cudaStreamEndCapture(stream.get(), &made) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&ready, made, 0) == cudaSuccess);
  }
  CHECK(gpu::complaints().size() == 1);
  REQUIRE(cudaGraphLaunch(ready, stream.get()) == cudaSuccess);
  while (cudaStreamQuery(stream.get()) == cudaErrorNotReady) {
  }
  REQUIRE(gpu::complaints().size() == 2);
  CHECK(gpu::complaints().back() == "cudaMemcpyAsync runs when its memory is given back");
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(made);
}
