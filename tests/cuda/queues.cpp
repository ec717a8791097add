// Streams whose queues hold little: calls then wait until something ends, as on a GPU those do that
// find about a thousand launches before them. No step may hang for that.
#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "cuda/executor_kernels.hpp"
#include "cuda/gated.hpp"
#include "cuda/summing.hpp"
#include "executor/pipeline.hpp"
#include "stretto/executor/cuda/handles.hpp"
#include "stretto/executor/cuda/step_graph.hpp"
#include "support.hpp"

using namespace stretto;
using namespace stretto::test;

TEST_CASE("pipelines have the bits of the plain computation, whatever their queues hold") {
  define_executor_kernels();
  for (const std::size_t depth : {1U, 2U, 3U, 8U})
    for (const layout how : {layout::serial, layout::separate})
      for (const int gpus : {1, 3})
        for (const bool graph : {false, true}) {
          CAPTURE(depth);
          gpu::reset(depth, gpus);
          gpu::limit_queues(depth);
          {
            const std::vector<plan_builder> plans = pipeline_plans(3, 4, 7, how);
            sample_stages inner(3);
            enqueueing_stages stages(inner.pointers);
            executor::options with = on_gpus(gpus);
            with.poison = true;
            if (graph) with.graph = executor::make_cuda_graph;
            executor::engine engine(views(plans), stages.pointers, std::move(with));
            // Of a graph two steps are computed by the sample's stages as they are called.
            for (int step = 0; step < 2; ++step) engine.step();
            CHECK(inner.sums() == expected_sums(3, 4, 7, 2));
          }
          CHECK(gpu::alive() == gpu::handles{});
          for (const std::string& each : gpu::complaints()) FAIL_CHECK(each);
        }
}

TEST_CASE("so do sums, and who waits for one to start") {
  define_executor_kernels();
  struct idle_stage final : executor::stage {
    void run(const executor::context&) override {}
  } idle;
  for (const std::size_t depth : {1U, 2U, 3U}) {
    gpu::reset(depth);
    gpu::limit_queues(depth);
    summing sums(false);
    executor::callback_stage inner(sums.callbacks);
    enqueueing_stages stages({&inner, &inner, &inner});
    executor::engine engine(views(sums.plans), stages.pointers, on_gpus(1));
    for (int step = 0; step < 3; ++step) engine.step();
    CHECK(sums.wrong == 0);
    CHECK(sums.checked == 9);
    const gated_sum plans(4);
    enqueueing_stages others({&idle, &idle});
    executor::engine gated(plans.given(), others.pointers, on_gpus(1));
    for (int step = 0; step < 3; ++step) gated.step();
    for (const std::string& each : gpu::complaints()) FAIL_CHECK(each);
  }
}

TEST_CASE("a call that waits for what its caller has yet to bring would wait for ever") {
  gpu::reset();
  gpu::limit_queues(2, std::chrono::milliseconds(20));
  const auto stream = executor::cuda::make_stream(0);
  bool brought = false;
  gpu::enqueue_until(stream.get(), "waits for the caller", [&] { return brought; });
  gpu::enqueue(stream.get(), "the last that there is room for", [] {});
  CHECK(gpu::complaints().empty());
  gpu::enqueue(stream.get(), "one more", [] {});
  REQUIRE(gpu::complaints().size() == 1);
  CHECK(gpu::complaints().front() == "a call waits for room in stream 0, and nothing ends");
  brought = true;
}
