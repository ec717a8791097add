// Streams as CCCL has them: lent to a plan, and given to its stages.
#include "stretto/executor/cuda/stream_ref.hpp"

#include <doctest/doctest.h>

#include "driver/simulated_gpu.hpp"
#include "one_rank.hpp"
#include "stretto/executor/cuda/device.hpp"

using namespace stretto;
using namespace stretto::test;

TEST_CASE("a stream_ref that is lent is the stage's, and so is every other stream of the plan") {
  gpu::reset();
  cudaStream_t mine = nullptr;
  REQUIRE(cudaStreamCreateWithPriority(&mine, cudaStreamNonBlocking, 0) == cudaSuccess);
  {
    one_rank run;
    struct probe final : executor::stage {
      explicit probe(executor::stage& made) : inner(made) {}
      void run(const executor::context& at) override {
        CHECK(executor::stream_ref_of(at).get() == executor::native_stream(at));
        lent += executor::stream_ref_of(at).get() == wanted;
        ++seen;
        inner.run(at);
      }
      executor::stage& inner;
      cudaStream_t wanted = nullptr;
      int lent = 0, seen = 0;
    } stage(*run.stages[0]);
    stage.wanted = mine;
    executor::stage* const stages[] = {&stage};
    executor::cuda_settings with;
    executor::lend(with, 0, ::cuda::stream_ref(mine));
    executor::engine engine({&run.view, 1}, stages, on_gpu(with));
    engine.step();
    CHECK(stage.seen > 0);
    CHECK(stage.lent == stage.seen);  // stages compute on the plan's first stream
    CHECK(std::vector<float>{run.inner.sum} == expected_sums(1, 3, 5, 1));
  }
  cudaStreamDestroy(mine);
}
