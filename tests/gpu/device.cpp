// The CUDA device on a GPU: memory, streams, events, errors. No kernels: copies and fills are work.
#include "stretto/executor/cuda/device.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "executor/failures.hpp"
#include "executor/plan_builder.hpp"
#include "stretto/executor/cuda/handles.hpp"
#include "stretto/executor/trace.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

executor::options on_gpu(executor::cuda_settings settings = {}) {
  executor::options with;
  with.make_device = [settings](const plan_view& plan, executor::monitor& watch) {
    return executor::make_cuda_device(plan, settings, watch);
  };
  return with;
}

//! Fills its output with the step's number plus one; a second job copies that on another stream.
struct filling_stage final : executor::stage {
  void run(const executor::context& at) override {
    const cudaStream_t stream = executor::native_stream(at);
    const std::span<std::byte> out = at.output();
    if (at.what.kind == job_kind::forward)
      executor::cuda::check(
          cudaMemsetAsync(out.data(), static_cast<int>(at.step) + 1, out.size(), stream), "memset");
    else
      executor::cuda::check(cudaMemcpyAsync(at.stash().data(), at.input().data(), at.input().size(),
                                            cudaMemcpyDeviceToDevice, stream),
                            "memcpy");
  }
};

plan_builder fill_and_copy(std::int64_t bytes) {
  plan_builder plan(0, 1, {"compute", "copies"});
  const int out = plan.add_buffer(buffer_role::output, 0, 0, bytes);
  const int kept = plan.add_buffer(buffer_role::stash, 0, 0, bytes);
  const int filled =
      plan.run({0, 0, 0, job_kind::forward}, 0, {{out, buffer_role::output, access::write}});
  plan.run({0, 0, 0, job_kind::backward}, 1,
           {{out, buffer_role::input, access::read}, {kept, buffer_role::stash, access::write}},
           {filled});
  return std::move(plan.end());
}

}  // namespace

TEST_CASE("a step runs in the order of streams and events, and its trace has all of it") {
  const plan_builder plan = fill_and_copy(1 << 20);
  const plan_view view = plan.view();
  filling_stage stage;
  executor::stage* const stages[] = {&stage};
  executor::options with = on_gpu({.timing = true});
  with.trace_steps = 2;
  with.poison = false;
  executor::engine engine({&view, 1}, stages, std::move(with));
  for (int step = 0; step < 5; ++step) engine.step();
  std::vector<unsigned char> seen(1 << 20);
  const std::byte* const kept = engine.arena(0).data() + (1 << 20);
  executor::cuda::check(cudaMemcpy(seen.data(), kept, seen.size(), cudaMemcpyDeviceToHost), "copy");
  CHECK(seen == std::vector<unsigned char>(1 << 20, 5));
  const std::vector<executor::trace_record> trace = engine.trace();
  CHECK(trace.size() == 2 * plan.instructions.size());
  const auto broken = executor::check_against({&view, 1}, trace);
  CHECK_MESSAGE(!broken, (broken ? broken->text : std::string()));
}

TEST_CASE("an arena that no GPU holds is refused, and the GPU can be used afterwards") {
  plan_builder plan = fill_and_copy(64);
  plan.head.arena_bytes = std::int64_t{1} << 43;
  const plan_view large = plan.view();
  const plan_builder other = fill_and_copy(64);
  const plan_view small = other.view();
  filling_stage stage;
  executor::stage* const stages[] = {&stage};
  try {
    executor::engine(std::span(&large, 1), stages, on_gpu());
    FAIL("8 TiB were allocated");
  } catch (const executor::cuda::error& caught) {
    CHECK(caught.code() == cudaErrorMemoryAllocation);
    CHECK_FALSE(caught.sticky());
  }
  executor::engine engine(std::span(&small, 1), stages, on_gpu());
  engine.step();
  CHECK(engine.steps() == 1);
}
