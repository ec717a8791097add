// Messages and sums between ranks of one process, on one GPU or on as many as there are. Work is
// fills and copies of the runtime's, so that no kernels but the transport's are needed.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "cuda/gated.hpp"
#include "executor/failures.hpp"
#include "executor/pipeline.hpp"
#include "stretto/executor/cuda/device.hpp"
#include "stretto/executor/cuda/handles.hpp"
#include "stretto/executor/cuda/loopback_transport.hpp"
#include "stretto/executor/cuda/step_graph.hpp"
#include "support/holding.hpp"
#include "support/passing.hpp"

using namespace stretto;
using namespace stretto::test;
using executor::cuda::check;

namespace {

executor::options on_gpus(int gpus) {
  executor::options with;
  with.make_device = [gpus](const plan_view& plan, executor::monitor& watch) {
    return executor::make_cuda_device(plan, {.device = plan.rank % gpus}, watch);
  };
  with.wire = executor::make_cuda_loopback_transport();
  with.poison = false;
  return with;
}

//! One, and two where there are so many.
std::vector<int> counts_of_gpus() {
  return executor::cuda_device_count() < 2 ? std::vector{1} : std::vector{1, 2};
}

}  // namespace

TEST_CASE("bytes travel to the last rank and back, in steps that are issued and in replayed ones") {
  // Recorded is the second step, with its values.
  for (const bool graph : {false, true})
    for (const std::int64_t elements : {7, 1 << 20}) {
      const int gpus = counts_of_gpus().back();
      const std::vector<plan_builder> plans = pipeline_plans(3, 4, elements, layout::separate);
      passing_stage stage;
      stage.ranks = 3;
      executor::stage* const stages[] = {&stage, &stage, &stage};
      executor::options with = on_gpus(gpus);
      if (graph) with.graph = executor::make_cuda_graph;
      executor::engine engine(views(plans), stages, std::move(with));
      for (int step = 0; step < 3; ++step) engine.step();
      expect_back(engine, plans[0].buffers, graph ? 1 : 2);
    }
}

TEST_CASE("a kernel that does not end is named, in steps that are issued and in replayed ones") {
  for (const bool graph : {false, true})
    for (const job& held : {job{0, 0, 0, job_kind::forward}, job{2, 0, 0, job_kind::backward}}) {
      CAPTURE(graph);
      holding_stage stage(held);
      // Of one micro-batch: behind what is held nothing else may run, whatever queue it is in.
      const std::vector<plan_builder> plans = pipeline_plans(3, 1, 1000, layout::separate);
      executor::stage* const stages[] = {&stage, &stage, &stage};
      executor::options with = on_gpus(1);
      if (graph) with.graph = executor::make_cuda_graph;
      holding_stage::be_impatient(with);
      executor::engine engine(views(plans), stages, std::move(with));
      stage.expect_named(engine);
    }
}

TEST_CASE("sums have the bits of the sum in rank order") {
  constexpr int ranks = 4;
  constexpr std::size_t elements = 100004, part = elements / ranks;
  std::vector<float> terms[ranks];
  std::vector<float> expected(elements);
  for (int rank = 0; rank < ranks; ++rank)
    for (std::size_t at = 0; at < elements; ++at) {
      terms[rank].push_back((rank % 2 == 0 ? 1e6F : -1e6F) / static_cast<float>(at + 7) +
                            static_cast<float>(rank));
      expected[at] = rank == 0 ? terms[0][at] : expected[at] + terms[rank][at];
    }
  const auto plans_of = [](bool dealt) {
    std::vector<plan_builder> plans;
    for (int rank = 0; rank < ranks; ++rank) {
      plan_builder plan(rank, ranks, {"compute", "sums"});
      plan.add_group({0, 1, 2, 3}, static_cast<std::int64_t>(elements), false);
      const int where =
          plan.add_buffer(buffer_role::collective, 0, 0, static_cast<std::int64_t>(elements * 4));
      const int ready = plan.run({rank, 0, 0, job_kind::reduce_grad}, 0,
                                 {{where, buffer_role::collective, access::write}});
      dealt ? plan.reduce_scatter(0, 1, where, {ready}) : plan.all_reduce(0, 1, where, {ready});
      plans.push_back(plan.end());
    }
    return plans;
  };
  struct filling_stage final : executor::stage {
    const std::vector<float>* terms = nullptr;
    void run(const executor::context& at) override {
      const std::vector<float>& mine = terms[at.rank];
      check(cudaMemcpyAsync(at.collective().data(), mine.data(), mine.size() * 4,
                            cudaMemcpyHostToDevice, executor::native_stream(at)),
            "cudaMemcpyAsync");
    }
  } stage;
  stage.terms = terms;
  executor::stage* const stages[] = {&stage, &stage, &stage, &stage};
  for (const bool dealt : {false, true})
    for (const int gpus : counts_of_gpus()) {
      const std::vector<plan_builder> plans = plans_of(dealt);
      executor::engine engine(views(plans), stages, on_gpus(gpus));
      for (int step = 0; step < 2; ++step) engine.step();
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        std::vector<float> seen(elements);
        check(cudaMemcpy(seen.data(), engine.arena(rank).data(), elements * 4,
                         cudaMemcpyDeviceToHost),
              "cudaMemcpy");
        const auto first = static_cast<std::ptrdiff_t>(dealt ? rank * part : 0);
        const auto end = first + static_cast<std::ptrdiff_t>(dealt ? part : elements);
        CHECK(std::equal(seen.begin() + first, seen.begin() + end, expected.begin() + first));
      }
    }
}

namespace {

struct gather_run {
  std::size_t part;  // bytes
  int gpus;
  bool graph;
};

void expect_gathered(const gather_run& of) {
  CAPTURE(of.part);
  CAPTURE(of.gpus);
  CAPTURE(of.graph);
  constexpr int ranks = 4;
  std::vector<plan_builder> plans;
  for (int rank = 0; rank < ranks; ++rank) {
    plan_builder plan(rank, ranks, {"compute", "gathers"});
    plan.add_group({0, 1, 2, 3}, 0, false);
    const int where =
        plan.add_buffer(buffer_role::weights, 0, 0, ranks * static_cast<std::int64_t>(of.part));
    const int ready =
        plan.run({0, 0, 0, job_kind::unshard}, 0, {{where, buffer_role::weights, access::write}});
    plan.all_gather(0, 1, where, {ready});
    plans.push_back(plan.end());
  }
  struct filling_stage final : executor::stage {
    void run(const executor::context& at) override {
      check(cudaMemsetAsync(at.own_weights().data(), 16 * at.rank + static_cast<int>(at.step),
                            at.own_weights().size(), executor::native_stream(at)),
            "cudaMemsetAsync");
    }
  } stage;
  executor::stage* const stages[] = {&stage, &stage, &stage, &stage};
  executor::options with = on_gpus(of.gpus);
  if (of.graph) with.graph = executor::make_cuda_graph;
  executor::engine engine(views(plans), stages, std::move(with));
  for (int step = 0; step < 2; ++step) engine.step();
  std::vector<unsigned char> expected;
  for (int rank = 0; rank < ranks; ++rank)
    expected.insert(expected.end(), of.part, static_cast<unsigned char>(16 * rank + 1));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    std::vector<unsigned char> seen(expected.size());
    check(cudaMemcpy(seen.data(), engine.arena(rank).data(), seen.size(), cudaMemcpyDeviceToHost),
          "cudaMemcpy");
    CHECK(seen == expected);
  }
}

}  // namespace

TEST_CASE("gathers bring every member's part to all, issued and replayed") {
  // With and without what a kernel can copy.
  for (const std::size_t part : {std::size_t{40000}, std::size_t{40004}})
    for (const int gpus : counts_of_gpus())
      for (const bool graph : {false, true}) expect_gathered({part, gpus, graph});
}

namespace {

void begin_beside_sum(bool graph) {
  constexpr std::int64_t elements = 1 << 20;
  struct filling_stage final : executor::stage {
    void run(const executor::context& at) override {
      if (at.what.kind == job_kind::forward) {
        ++begun;
        return;
      }
      // As floats 0x3f3f3f3f and 0x40404040.
      check(cudaMemsetAsync(at.collective().data(), at.rank == 0 ? 0x3f : 0x40,
                            at.collective().size(), executor::native_stream(at)),
            "cudaMemsetAsync");
    }
    int begun = 0;
  } stage;
  const float sum = std::bit_cast<float>(0x3f3f3f3f) + std::bit_cast<float>(0x40404040);
  const gated_sum plans(elements);
  executor::stage* const stages[] = {&stage, &stage};
  executor::options with = on_gpus(1);
  if (graph) with.graph = executor::make_cuda_graph;
  executor::engine engine(plans.given(), stages, std::move(with));
  for (int step = 0; step < 4; ++step) engine.step();
  CHECK(stage.begun == (graph ? 4 : 8));  // it is recorded once
  for (std::size_t rank = 0; rank < 2; ++rank) {
    std::vector<float> seen(elements);
    check(cudaMemcpy(seen.data(), engine.arena(rank).data(), seen.size() * sizeof(float),
                     cudaMemcpyDeviceToHost),
          "cudaMemcpy");
    CHECK(seen == std::vector<float>(seen.size(), sum));
  }
}

}  // namespace

TEST_CASE("what waits for a sum to start begins") {
  begin_beside_sum(false);
}

TEST_CASE("what waits for a sum to start begins in a replayed step") {
  begin_beside_sum(true);
}
