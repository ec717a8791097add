// NCCL itself, on a GPU of which it would need two.
#if __has_include("stretto/executor/cuda/nccl_transport.hpp")

#include <doctest/doctest.h>
#include <nccl.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../bench/gpu/lone_rank.hpp"
#include "executor/failures.hpp"
#include "executor/pipeline.hpp"
#include "gpu/support/by_nccl.hpp"
#include "gpu/support/holding.hpp"
#include "stretto/executor/cuda/error.hpp"
#include "stretto/executor/cuda/handles.hpp"
#include "stretto/executor/cuda/step_graph.hpp"
#include "support/passing.hpp"

using namespace stretto;
using namespace stretto::test;

TEST_CASE("what a thread of NCCL's launches is recorded by the thread that records, and replayed") {
  namespace cuda = executor::cuda;
  constexpr std::size_t bytes = 1000003;
  const cuda::device_memory from = cuda::make_device_memory(bytes);
  const cuda::device_memory into = cuda::make_device_memory(bytes);
  const cuda::owned_stream on = cuda::make_stream(0);
  const auto wait = [&] { check(cudaStreamSynchronize(on.get()), "cudaStreamSynchronize"); };
  ncclConfig_t as_the_transport = NCCL_CONFIG_INITIALIZER;
  as_the_transport.blocking = 0;
  bench::lone_rank rank(as_the_transport);
  {
    // It connects at its first message, which no graph takes.
    rank.pass(from.get(), into.get(), bytes, on.get());
    wait();
    check(cudaStreamBeginCapture(on.get(), cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
    rank.pass(from.get(), into.get(), bytes, on.get());
    cudaGraph_t made = nullptr;
    check(cudaStreamEndCapture(on.get(), &made), "cudaStreamEndCapture");
    const cuda::owned<cudaGraph_t, cudaGraphDestroy> graph(made);
    cudaGraphExec_t instance = nullptr;
    check(cudaGraphInstantiate(&instance, made, 0), "cudaGraphInstantiate");
    const cuda::owned<cudaGraphExec_t, cudaGraphExecDestroy> ready(instance);
    for (const int value : {1, 2, 3}) {
      check(cudaMemsetAsync(from.get(), value, bytes, on.get()), "cudaMemsetAsync");
      check(cudaMemsetAsync(into.get(), 0, bytes, on.get()), "cudaMemsetAsync");
      check(cudaGraphLaunch(ready.get(), on.get()), "cudaGraphLaunch");
      wait();
      std::vector<unsigned char> seen(bytes);
      check(cudaMemcpy(seen.data(), into.get(), bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
      CHECK(seen == std::vector<unsigned char>(bytes, static_cast<unsigned char>(value)));
    }
  }
  // Behind the graph that holds it.
  CHECK_NOTHROW(rank.finish());
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

namespace {

constexpr std::int64_t elements = 100003;

//! Of a rank that sums, with nobody, what a job of it leaves.
plan_builder lone_sum() {
  plan_builder plan(0, 1, {"compute", "sums"});
  plan.add_group({0}, elements, false);
  const int where = plan.add_buffer(buffer_role::collective, 0, 0, elements * 4);
  const int ready = plan.run({0, 0, 0, job_kind::reduce_grad}, 0,
                             {{where, buffer_role::collective, access::write}});
  plan.all_reduce(0, 1, where, {ready});
  return plan;
}

}  // namespace

TEST_CASE(
    "NCCL opens, sums, deals and gathers, is recorded and closes, where a rank is with nobody") {
  struct filling_stage final : executor::stage {
    void run(const executor::context& at) override {
      const std::span<std::byte> to =
          at.what.kind == job_kind::unshard ? at.own_weights() : at.buffers.front().data;
      executor::cuda::check(
          cudaMemsetAsync(to.data(), 0x3f, to.size(), executor::native_stream(at)),
          "cudaMemsetAsync");
    }
  } stage;
  executor::stage* const stages[] = {&stage};
  plan_builder plan = lone_sum();
  const int weights = plan.add_buffer(buffer_role::weights, 0, 0, elements * 4);
  const int put =
      plan.run({0, 0, 0, job_kind::unshard}, 0, {{weights, buffer_role::weights, access::write}});
  plan.all_gather(0, 1, weights, {put});
  const int dealt = plan.add_buffer(buffer_role::collective, 0, 0, elements * 4);
  const int ready = plan.run({0, 0, 0, job_kind::reduce_grad}, 0,
                             {{dealt, buffer_role::collective, access::write}});
  plan.reduce_scatter(0, 1, dealt, {ready});
  plan.end();
  const plan_view view = plan.view();
  for (const bool registered : {false, true})
    for (const bool graph : {false, true}) {
      CAPTURE(registered);
      CAPTURE(graph);
      const auto alone = executor::make_local_bootstraps(1);
      executor::options with;
      with.make_device = [&](const plan_view& of, executor::monitor& watch) {
        executor::cuda_settings settings;
        if (registered) settings.arena = executor::nccl_memory();
        return executor::make_cuda_device(of, settings, watch);
      };
      with.wire = executor::make_nccl_transport(
          *alone[0], {.registered = registered, .kernels_loaded = true});
      with.poison = false;
      if (graph) with.graph = executor::make_cuda_graph;
      executor::engine engine({&view, 1}, stages, std::move(with));
      for (int step = 0; step < 4; ++step) engine.step();
      std::vector<unsigned char> seen(elements * 4);
      for (const buffer& each : view.buffers) {
        executor::cuda::check(cudaMemcpy(seen.data(), engine.arena(0).data() + each.offset,
                                         seen.size(), cudaMemcpyDeviceToHost),
                              "cudaMemcpy");
        CHECK(seen == std::vector<unsigned char>(elements * 4, 0x3f));
      }
    }
}

TEST_CASE("a kernel that does not end before NCCL's sum ends the step, and NCCL's part with it") {
  plan_builder plan = lone_sum();
  plan.end();
  const plan_view view = plan.view();
  for (const bool graph : {false, true}) {
    CAPTURE(graph);
    holding_stage stage({0, 0, 0, job_kind::reduce_grad});
    executor::stage* const stages[] = {&stage};
    const auto alone = executor::make_local_bootstraps(1);
    executor::options with = by_nccl(*alone[0], 1);
    if (graph) with.graph = executor::make_cuda_graph;
    holding_stage::be_impatient(with);
    executor::engine engine({&view, 1}, stages, std::move(with));
    stage.expect_named(engine);
  }
}

#endif
