// A kernel that touches what it may not ends the step, and the process's use of its GPU: a program
// of its own.
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "executor/failures.hpp"
#include "executor/pipeline.hpp"
#include "stretto/executor/cuda/device.hpp"
#include "stretto/executor/cuda/error.hpp"
#include "stretto/executor/cuda/loopback_transport.hpp"
#include "stretto/executor/engine.hpp"
#include "support/kernels.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

executor::options on_one_gpu() {
  executor::options with;
  with.make_device = [](const plan_view& plan, executor::monitor& watch) {
    return executor::make_cuda_device(plan, {}, watch);
  };
  with.wire = executor::make_cuda_loopback_transport();
  with.poison = false;
  with.deadline = std::chrono::seconds(20);
  return with;
}

}  // namespace

TEST_CASE("a kernel's fault ends the step with one error, and a new engine is refused") {
  struct faulting_stage final : executor::stage {
    void run(const executor::context& at) override {
      if (at.step == 1 && at.what == job{1, 1, 0, job_kind::backward})
        executor::cuda::check(launch_fault(executor::native_stream(at)), "a kernel that faults");
    }
  } stage;
  const std::vector<plan_builder> plans = pipeline_plans(3, 2, 1000, layout::separate);
  executor::stage* const stages[] = {&stage, &stage, &stage};
  {
    executor::engine engine(views(plans), stages, on_one_gpu());
    engine.step();
    const executor::execution_error error = error_of(engine);
    CHECK(error.step() == 1);
    expect_part(error.what(), "cudaErrorIllegalAddress (700)");
    expect_part(error.what(), "must be restarted");
  }
  try {
    const executor::engine again(views(plans), stages, on_one_gpu());
    FAIL("the GPU was used again");
  } catch (const executor::cuda::error& caught) {
    CHECK(caught.sticky());
    expect_part(caught.what(), "must be restarted");
  }
}
