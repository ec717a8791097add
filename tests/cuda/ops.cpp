// Jobs expanded into ops on simulated GPUs: sums over workers beside computation, with the events
// of their start, in steps that are issued and in replayed ones.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "cuda/executor_kernels.hpp"
#include "executor/sharing_stage.hpp"
#include "stretto/executor/cuda/loopback_transport.hpp"
#include "stretto/executor/cuda/step_graph.hpp"
#include "stretto/plan/expanded.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/shared.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "stretto/schedule/zb_h1.hpp"
#include "support.hpp"
#include "support/two_products.hpp"

using namespace stretto;
using namespace stretto::test;
using support::op_order;
using support::two_products;

namespace {

constexpr int workers = 2;

template <class Schedule, class Ops>
void run(const Schedule& schedule, const shape& sizes, const Ops& ops) {
  CAPTURE(std::string(Schedule::name));
  plan_request request;
  request.stages = {{.output = sharing_stage::bytes,
                     .stash = 4 * sharing_stage::bytes,
                     .gradients = sharing_stage::bytes}};
  const planned base(schedule, sizes, job_table(sizes.ranks, 1).view(), overlap::separate{},
                     request);
  REQUIRE(base.answer().ok());
  const auto streams = ops.streams();
  const expanded made(base, streams, ops);
  REQUIRE(made.answer().ok());
  const shared all(made.plans(), workers);
  define_executor_kernels();
  for (const bool graph : {false, true})
    for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
      CAPTURE(graph);
      CAPTURE(seed);
      gpu::reset(seed);
      std::vector<sharing_stage> inner(all.plans().size());
      std::vector<enqueueing_stage> stages;
      std::vector<executor::stage*> pointers;
      stages.reserve(inner.size());
      for (std::size_t at = 0; at < inner.size(); ++at) {
        inner[at].worker = static_cast<int>(at) % workers;
        inner[at].stages = sizes.ranks;
        inner[at].gradients.resize(static_cast<std::size_t>(sizes.ranks));
        inner[at].summed.resize(static_cast<std::size_t>(sizes.ranks));
        pointers.push_back(&stages.emplace_back(inner[at]));
      }
      executor::options with = on_gpu();
      with.wire = executor::make_cuda_loopback_transport();
      with.poison = true;
      if (graph) with.graph = executor::make_cuda_graph;
      executor::engine engine(all.plans(), pointers, std::move(with));
      for (int step = 0; step < 3; ++step) {
        for (sharing_stage& each : inner) std::ranges::fill(each.gradients, 0.0);
        engine.step();
        for (std::size_t at = 0; at < inner.size(); ++at) {
          const int stage = static_cast<int>(at) / workers;
          CHECK(inner[at].gradients[static_cast<std::size_t>(stage)] ==
                expected(stage, sizes.ranks, sizes.microbatches, workers));
        }
      }
      CHECK(gpu::complaints().empty());
    }
}

}  // namespace

TEST_CASE("workers of a rank sum what they compute, whatever order streams run in") {
  run(schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 4},
      two_products<op_order::input_gradient_first>{});
  run(schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 4},
      two_products<op_order::look_ahead, 8>{});
  run(schedule::zb_h1{}, {.ranks = 2, .microbatches = 4}, two_products<op_order::look_ahead, 8>{});
}
