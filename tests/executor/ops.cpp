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
#include "support/two_products.hpp"

using namespace stretto;
using support::op_order;
using support::two_products;

namespace {

constexpr std::int64_t bytes = 640;
constexpr std::size_t elements = bytes / sizeof(float);

//! One worker of a rank's: y = x + sum over workers k of (k + 1) x, in the ops of two_products. All
//! numbers are whole and small, so that every order of sums gives the same bits.
struct sharing_stage final : executor::stage {
  int worker = 0;
  int replica = 0;
  int stages = 1;
  std::vector<double> gradients;  // by stage
  std::vector<int> stage_of;      // by group of replicas, as it was written
  std::vector<double> summed;     // by stage, what the optimizer reads
  std::atomic<int> ops{0};

  static std::span<float> part(const executor::context& at, std::size_t of) {
    return at.view<float>(buffer_role::stash).subspan(of * elements, elements);
  }
  void run(const executor::context& at) override {
    if (at.op < 0) return end(at);
    ++ops;
    CHECK(at.pieces >= 1);
    const bool forward = at.what.kind == job_kind::forward;
    if (forward)
      run_forward(at);
    else
      run_backward(at, at.what.kind == job_kind::backward_weight ? at.op + 5 : at.op);
  }

 private:
  //! What each replica adds is its own.
  void end(const executor::context& at) {
    if (at.what.kind == job_kind::reduce_grad) {
      const auto group = static_cast<std::size_t>(at.what.microbatch);
      stage_of.resize(std::max(stage_of.size(), group + 1), -1);
      stage_of[group] = at.what.stage;
      const double own = gradients[static_cast<std::size_t>(at.what.stage)] * (replica + 1);
      std::ranges::fill(at.view<float>(buffer_role::collective, at.what.microbatch),
                        static_cast<float>(own));
    } else if (at.what.kind == job_kind::optimizer) {
      for (std::size_t group = 0; group < stage_of.size(); ++group) {
        const auto sum = at.view<float>(buffer_role::collective, static_cast<int>(group));
        if (sum.empty()) continue;
        CHECK(std::ranges::count(sum, sum.front()) == static_cast<std::ptrdiff_t>(elements));
        summed[static_cast<std::size_t>(stage_of[group])] = sum.front();
      }
    }
  }
  // Of an op in pieces, its own elements.
  template <class Each>
  void for_piece(const executor::context& at, const Each& each) const {
    const auto pieces = static_cast<std::size_t>(at.pieces);
    const auto piece = static_cast<std::size_t>(at.piece);
    for (std::size_t one = elements * piece / pieces; one < elements * (piece + 1) / pieces; ++one)
      each(one);
  }
  void run_forward(const executor::context& at) {
    const auto x = part(at, 0);
    const auto sum = at.view<float>(buffer_role::workspace);
    switch (at.op) {
      case 0:
        for (std::size_t one = 0; one < elements; ++one)
          x[one] = at.what.stage == 0 ? static_cast<float>(at.what.microbatch + 1)
                                      : at.view<float>(buffer_role::input)[one];
        break;
      case 1:
        for_piece(at, [&](std::size_t one) {
          part(at, 1)[one] = x[one] * static_cast<float>(worker + 1);
        });
        break;
      case 2:
        for_piece(at, [&](std::size_t one) { sum[one] = part(at, 1)[one]; });
        break;
      default:
        if (const auto y = at.view<float>(buffer_role::output); !y.empty())
          for (std::size_t one = 0; one < elements; ++one) y[one] = sum[one] + x[one];
    }
  }
  void run_backward(const executor::context& at, int op) {
    const auto dy = part(at, 2);
    const auto sum = at.view<float>(buffer_role::workspace);
    double& gradient = gradients[static_cast<std::size_t>(at.what.stage)];
    switch (op) {
      case 0:
        for (std::size_t one = 0; one < elements; ++one)
          dy[one] = at.what.stage + 1 == stages ? 1.0F
                                                : at.view<float>(buffer_role::output_gradient)[one];
        break;
      case 1:
        for_piece(at, [&](std::size_t one) {
          part(at, 3)[one] = dy[one] * static_cast<float>(worker + 1);
        });
        break;
      case 2:
        for_piece(at, [&](std::size_t one) { sum[one] = part(at, 3)[one]; });
        break;
      case 4:
        if (const auto dx = at.view<float>(buffer_role::input_gradient); !dx.empty())
          for (std::size_t one = 0; one < elements; ++one) dx[one] = sum[one] + dy[one];
        break;
      default:
        for (std::size_t one = 0; one < elements; ++one)
          gradient += static_cast<double>(part(at, 0)[one]) * static_cast<double>(dy[one]);
    }
  }
};

double expected(int stage, int stages, int microbatches, int workers) {
  const double factor = 1 + workers * (workers + 1) / 2;
  double sum = 0;
  for (int microbatch = 0; microbatch < microbatches; ++microbatch)
    sum += (microbatch + 1) * std::pow(factor, stage) * std::pow(factor, stages - 1 - stage);
  return 2 * sum * static_cast<double>(elements);  // both weights' ops
}

template <class Schedule, class Ops>
void run(const Schedule& schedule, const shape& sizes, int workers, int replicas, const Ops& ops) {
  CAPTURE(std::string(Schedule::name));
  CAPTURE(workers);
  CAPTURE(replicas);
  const placement where = place(schedule.placed(), sizes);
  const job_table costs(sizes.ranks, where.chunks);
  plan_request request;
  request.stages = {{.output = bytes, .stash = 4 * bytes, .gradients = bytes}};
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
  with.poison = true;
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
  run(schedule::interleaved{}, {.ranks = 2, .microbatches = 4, .chunks = 2}, workers, replicas, ops);
  run(schedule::zbv{}, {.ranks = 2, .microbatches = 4, .chunks = 2}, workers, replicas, ops);
  run(schedule::dualpipe_v{}, {.ranks = 2, .microbatches = 4, .chunks = 2}, workers, replicas, ops);
}

TEST_CASE("workers of a rank sum what they compute, whatever the order of the ops") {
  for (const int workers : {1, 2, 3}) {
    run_all(two_products<op_order::program, 0, 2>{}, workers);
    run_all(two_products<op_order::input_gradient_first, 0, 2>{}, workers);
    run_all(two_products<op_order::look_ahead, 8, 2>{}, workers);
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
