// Jobs expanded into ops, several workers a rank: every op runs, sums are over the workers, of
// gradients over their data-parallel replicas, whatever the order, and nothing is released that is
// still in use.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "stretto/executor/engine.hpp"
#include "stretto/executor/trace.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/expanded.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/shared.hpp"
#include "stretto/schedule/dualpipe_v.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "stretto/schedule/paired_1f1b.hpp"
#include "stretto/schedule/zb_h1.hpp"
#include "stretto/schedule/zbv.hpp"
#include "sharing_stage.hpp"
#include "support/two_products.hpp"

using namespace stretto;
using namespace stretto::test;
using support::op_order;
using support::two_products;

namespace {

template <class Schedule, class Ops>
void run(const Schedule& schedule, const shape& sizes, int workers, int replicas, const Ops& ops) {
  CAPTURE(std::string(Schedule::name));
  CAPTURE(workers);
  CAPTURE(replicas);
  const placement where = stretto::place(schedule.placed(), sizes);
  const job_table costs(sizes.ranks, where.chunks);
  plan_request request;
  request.stages = {{.output = sharing_stage::bytes,
                      .stash = 4 * sharing_stage::bytes,
                      .gradients = sharing_stage::bytes}};
  request.data_parallel = replicas > 1;
  const planned base(schedule, sizes, costs.view(), overlap::separate{}, request);
  REQUIRE(base.answer().ok());
  const auto streams = ops.streams();
  const expanded made(base, streams, ops);
  REQUIRE(made.answer().ok());
  const shared all(made.plans(), workers, replicas);
  std::vector<sharing_stage> stages(all.plans().size());
  std::vector<executor::stage*> pointers;
  for (std::size_t at = 0; at < stages.size(); ++at) {
    stages[at].worker = static_cast<int>(at) % workers;
    stages[at].replica = static_cast<int>(at) / workers % replicas;
    stages[at].stages = where.stages();
    stages[at].gradients.resize(static_cast<std::size_t>(where.stages()));
    stages[at].summed.resize(static_cast<std::size_t>(where.stages()));
    pointers.push_back(&stages[at]);
  }
  executor::options with;
  with.poison = with.checked = true;
  with.trace_steps = 1;
  with.delay = {11, std::chrono::microseconds(20)};
  executor::engine engine(all.plans(), pointers, std::move(with));
  for (std::size_t rank = 0; rank < stages.size(); ++rank)
    std::ranges::fill(engine.arena(rank), std::byte{executor::poison_byte});
  for (int step = 0; step < 2; ++step) {
    for (sharing_stage& each : stages) {
      std::ranges::fill(each.gradients, 0.0);
      std::ranges::fill(each.summed, 0.0);
    }
    engine.step();
    for (std::size_t at = 0; at < stages.size(); ++at) {
      CHECK(stages[at].ops > 0);
      const int rank = static_cast<int>(at) / (workers * replicas);
      for (int stage = 0; stage < where.stages(); ++stage) {
        bool here = false;
        for (int chunk = 0; chunk < where.chunks; ++chunk)
          here = here || where.stage_of(rank, chunk) == stage;
        const double own =
            here ? expected(stage, where.stages(), sizes.microbatches, workers) : 0.0;
        CHECK(stages[at].gradients[static_cast<std::size_t>(stage)] == own);
        if (replicas == 1) continue;
        CHECK(stages[at].summed[static_cast<std::size_t>(stage)] ==
              own * replicas * (replicas + 1) / 2);
      }
    }
  }
  const auto records = engine.trace();
  CHECK(!records.empty());
  CHECK(!executor::check_against(all.plans(), records).has_value());
}

template <class Ops>
void run_all(const Ops& ops, int workers, int replicas = 1) {
  run(schedule::one_f_one_b{}, {.ranks = 3, .microbatches = 4}, workers, replicas, ops);
  run(schedule::paired_1f1b{}, {.ranks = 2, .microbatches = 6}, workers, replicas, ops);
  run(schedule::zb_h1{}, {.ranks = 2, .microbatches = 4}, workers, replicas, ops);
  run(schedule::interleaved{}, {.ranks = 2, .microbatches = 4, .chunks = 2}, workers, replicas,
      ops);
  run(schedule::zbv{}, {.ranks = 2, .microbatches = 4, .chunks = 2}, workers, replicas, ops);
  run(schedule::dualpipe_v{}, {.ranks = 2, .microbatches = 4, .chunks = 2}, workers, replicas, ops);
}

TEST_CASE("workers of a rank sum what they compute, whatever the order of the ops") {
  for (const int workers : {1, 2, 3}) {
    run_all(two_products<op_order::program, 0, 2>{}, workers);
    run_all(two_products<op_order::input_gradient_first, 0, 2>{}, workers);
    run_all(two_products<op_order::look_ahead, 8, 2>{}, workers);
    run_all(two_products<op_order::pieces, 0, 2>{}, workers);
  }
}

TEST_CASE("gradients are summed over data-parallel replicas, of each shard among its likes") {
  run_all(two_products<op_order::program, 0, 2>{}, 1, 3);
  run_all(two_products<op_order::look_ahead, 8, 2>{}, 2, 2);
}

TEST_CASE("a plan whose sums are not given to groups is refused by instruction") {
  const planned base(schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 2},
                     job_table(2, 1).view(), overlap::separate{});
  const two_products<op_order::program> ops;
  const auto streams = ops.streams();
  const expanded made(base, streams, ops);
  REQUIRE(made.answer().ok());
  sharing_stage stage;
  executor::stage* const stages[] = {&stage, &stage};
  CHECK_THROWS_WITH_AS(executor::engine(made.plans(), stages),
                       doctest::Contains("see stretto::shared"), executor::plan_error);
}

}  // namespace
