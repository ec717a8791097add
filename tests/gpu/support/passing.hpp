#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "stretto/executor/cuda/device.hpp"
#include "stretto/executor/cuda/handles.hpp"
#include "stretto/executor/engine.hpp"
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

//! Whether all that was handed on is back on the first rank, whose buffers these are, as it was
//! filled in the step.
inline void expect_back(executor::engine& engine, std::span<const buffer> buffers,
                        std::int64_t step) {
  for (const buffer& each : buffers) {
    if (each.role != buffer_role::input_gradient) continue;
    std::vector<unsigned char> seen(static_cast<std::size_t>(each.bytes));
    check(cudaMemcpy(seen.data(), engine.arena(0).data() + each.offset, seen.size(),
                     cudaMemcpyDeviceToHost),
          "cudaMemcpy");
    const auto expected = static_cast<unsigned char>(passing_stage::value(step, each.microbatch));
    CHECK(seen == std::vector<unsigned char>(seen.size(), expected));
  }
}

}  // namespace stretto::test
