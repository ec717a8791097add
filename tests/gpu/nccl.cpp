// NCCL itself: between two GPUs, where there are two; with one, only what it says to that.
#if __has_include("stretto/executor/cuda/nccl_transport.hpp")

#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "executor/failures.hpp"
#include "executor/pipeline.hpp"
#include "stretto/executor/cuda/nccl_transport.hpp"
#include "support/passing.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

executor::options by_nccl(executor::bootstrap& alone, int gpus) {
  executor::options with;
  with.make_device = [gpus](const plan_view& plan, executor::monitor& watch) {
    return executor::make_cuda_device(plan, {.device = plan.rank % gpus}, watch);
  };
  // Its stages launch no kernels, but copies.
  with.wire = executor::make_nccl_transport(alone, {.kernels_loaded = true});
  with.poison = false;
  return with;
}

}  // namespace

TEST_CASE("bytes travel between GPUs") {
  if (executor::cuda_device_count() < 2) {
    MESSAGE("skipped: one GPU");
    return;
  }
  const auto alone = executor::make_local_bootstraps(1);
  for (const std::int64_t elements : {7, 1 << 20}) {
    const std::vector<plan_builder> plans = pipeline_plans(2, 4, elements, layout::separate);
    passing_stage stage;
    stage.ranks = 2;
    executor::stage* const stages[] = {&stage, &stage};
    executor::engine engine(views(plans), stages, by_nccl(*alone[0], 2));
    for (int step = 0; step < 3; ++step) engine.step();
    for (const buffer& each : plans[0].buffers) {
      if (each.role != buffer_role::input_gradient) continue;
      std::vector<unsigned char> seen(static_cast<std::size_t>(each.bytes));
      check(cudaMemcpy(seen.data(), engine.arena(0).data() + each.offset, seen.size(),
                       cudaMemcpyDeviceToHost),
            "cudaMemcpy");
      const auto expected = static_cast<unsigned char>(passing_stage::value(2, each.microbatch));
      CHECK(seen == std::vector<unsigned char>(seen.size(), expected));
    }
  }
}

TEST_CASE("NCCL's own refusal, of two ranks on one GPU, is told before the first step") {
  const auto alone = executor::make_local_bootstraps(1);
  const std::vector<plan_builder> plans = pipeline_plans(2, 1, 7, layout::separate);
  passing_stage stage;
  executor::stage* const stages[] = {&stage, &stage};
  const std::string text = refusal_of(
      [&] { const executor::engine refused(views(plans), stages, by_nccl(*alone[0], 1)); });
  expect_part(text, "the NCCL transport cannot be opened: channel ");
  expect_part(text, "ncclras");
}

#endif
