// NCCL itself, on a GPU of which it would need two.
#if __has_include("stretto/executor/cuda/nccl_transport.hpp")

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "executor/failures.hpp"
#include "executor/pipeline.hpp"
#include "gpu/support/by_nccl.hpp"
#include "support/passing.hpp"

using namespace stretto;
using namespace stretto::test;

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
