#pragma once

#include <cstdint>
#include <span>

#include "stretto/executor/cuda/device.hpp"
#include "stretto/executor/cuda/handles.hpp"
#include "stretto/executor/stage.hpp"

namespace stretto::test {

using executor::cuda::check;

inline void pass(std::span<std::byte> to, std::span<const std::byte> from, cudaStream_t stream) {
  check(cudaMemcpyAsync(to.data(), from.data(), to.size(), cudaMemcpyDeviceToDevice, stream),
        "cudaMemcpyAsync");
}

//! The first rank fills its input by micro-batch and step, all others hand on what they get.
struct passing_stage final : executor::stage {
  int ranks = 0;
  void run(const executor::context& at) override {
    const cudaStream_t stream = executor::native_stream(at);
    if (at.what.kind == job_kind::forward) {
      if (at.rank == 0)
        check(cudaMemsetAsync(at.input().data(), value(at.step, at.what.microbatch),
                              at.input().size(), stream),
              "cudaMemsetAsync");
      pass(at.stash(), at.input(), stream);
      pass(at.output(), at.input(), stream);
    } else {
      pass(at.input_gradient(), at.rank + 1 == ranks ? at.stash() : at.output_gradient(), stream);
    }
  }
  static int value(std::int64_t step, int microbatch) {
    return static_cast<int>(step) * 16 + microbatch + 1;
  }
};

}  // namespace stretto::test
