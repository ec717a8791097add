// NCCL itself, between two GPUs.
#if __has_include("stretto/executor/cuda/nccl_transport.hpp")

#include <doctest/doctest.h>

#include <vector>

#include "executor/pipeline.hpp"
#include "gpu/support/by_nccl.hpp"
#include "gpu/support/passing.hpp"

using namespace stretto;
using namespace stretto::test;

TEST_CASE("bytes travel between GPUs") {
  const auto alone = executor::make_local_bootstraps(1);
  for (const std::int64_t elements : {7, 1 << 20}) {
    const std::vector<plan_builder> plans = pipeline_plans(2, 4, elements, layout::separate);
    passing_stage stage;
    stage.ranks = 2;
    executor::stage* const stages[] = {&stage, &stage};
    executor::engine engine(views(plans), stages, by_nccl(*alone[0], 2));
    for (int step = 0; step < 3; ++step) engine.step();
    expect_back(engine, plans[0].buffers, 2);
  }
}

#endif
