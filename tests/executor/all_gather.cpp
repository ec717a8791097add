// Weights that replicas hold a part of each: gathered for their stage's jobs, and updated part by
// part.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/gathering.hpp"
#include "failures.hpp"
#include "stretto/executor/engine.hpp"
#include "stretto/lowering/streams/all.hpp"
#include "stretto/lowering/streams/input_gradient_first.hpp"
#include "stretto/plan/expanded.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/shared.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/sanitized.hpp"
#include "support/schedules.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

constexpr int width = 24;  // of a row, dealt to up to four replicas

float initial(int stage, int k) {
  return (stage + k) % 3 == 0 ? 0.5F : -1;
}
float data(int microbatch, int slice, int k) {
  return static_cast<float>((3 * microbatch + 5 * slice + k) % 5 - 2);
}
float loss_gradient(float y) {
  return (y - 1) / 1024;
}
//! One or minus one, by all bits of the gradient: weights that it is taken from would soon have
//! more bits than a float, and sums depend on their order.
float updated(float weight, float gradient) {
  const long parts = std::lround(std::ldexp(gradient, 22));
  return (parts + (weight > 0 ? 1 : 0)) % 5 % 2 == 0 ? 1 : -1;
}

//! What each worker of a rank has, and nobody else: its part of the stages' weights. A stage
//! multiplies by its weights; all sums are exact.
class sharded_stage final : public executor::stage {
 public:
  sharded_stage(int stages, int microbatches, int replicas, int shards, int worker)
      : stages_(stages),
        microbatches_(microbatches),
        replicas_(replicas),
        replica_(worker / shards % replicas),
        gradients(static_cast<std::size_t>(stages), std::vector<float>(width)) {
    const int part = width / replicas;
    for (int s = 0; s < stages; ++s) {
      auto& own = weights.emplace_back();
      for (int k = 0; k < part; ++k) own.push_back(initial(s, replica_ * part + k));
    }
  }

  void run(const executor::context& at) override {
    const auto s = static_cast<std::size_t>(at.what.stage);
    switch (at.what.kind) {
      case job_kind::unshard: {
        REQUIRE(at.own_weights().size() == weights[s].size() * sizeof(float));
        std::ranges::copy(std::as_bytes(std::span(weights[s])), at.own_weights().begin());
        return;
      }
      case job_kind::reshard:
        ++dropped;
        return;
      case job_kind::forward:
        return forward(at);
      case job_kind::backward:
        backward_input(at);
        return backward_weight(at);
      case job_kind::backward_input:
        return backward_input(at);
      case job_kind::backward_weight:
        return backward_weight(at);
      case job_kind::reduce_grad: {
        const std::span<const float> before = at.summed(at.what.stage);
        const auto sum = before.empty() ? std::span<const float>(gradients[s]) : before;
        const auto own = at.view<float>(buffer_role::collective);
        REQUIRE(own.size() == sum.size());
        std::ranges::copy(sum, own.begin());
        return;
      }
      default:
        if (at.what.kind == job_kind::optimizer) update(at);
    }
  }

  std::vector<std::vector<float>> weights{};  // by stage, its own part
  int dropped = 0;

 private:
  bool last(const executor::context& at) const { return at.what.stage + 1 == stages_; }
  static std::span<float> row(const executor::context& at, buffer_role role) {
    return at.need<float>(role, width);
  }
  float input(const executor::context& at, std::size_t k) const {
    return at.what.stage > 0 ? row(at, buffer_role::input)[k]
                             : data(replica_ * microbatches_ + at.what.microbatch, at.what.slice,
                                    static_cast<int>(k));
  }
  std::span<float> gradient(const executor::context& at) const {
    return row(at, last(at) ? buffer_role::stash : buffer_role::output_gradient);
  }
  void forward(const executor::context& at) const {
    const auto w = row(at, buffer_role::weights);
    const auto y = row(at, last(at) ? buffer_role::stash : buffer_role::output);
    for (std::size_t k = 0; k < width; ++k) y[k] = w[k] * input(at, k);
  }
  void backward_input(const executor::context& at) const {
    const auto w = row(at, buffer_role::weights);
    const auto dy = gradient(at);
    if (last(at)) std::transform(dy.begin(), dy.end(), dy.begin(), loss_gradient);
    if (at.what.stage == 0) return;
    const auto dx = row(at, buffer_role::input_gradient);
    for (std::size_t k = 0; k < width; ++k) dx[k] = w[k] * dy[k];
  }
  void backward_weight(const executor::context& at) {
    const auto dy = gradient(at);
    auto& sum = gradients[static_cast<std::size_t>(at.what.stage)];
    for (std::size_t k = 0; k < width; ++k) sum[k] += dy[k] * input(at, k);
  }
  void update(const executor::context& at) {
    const std::size_t part = width / static_cast<std::size_t>(replicas_);
    for (int s = 0; s < stages_; ++s) {
      const std::span<const float> sum = at.summed(s);
      auto& own = weights[static_cast<std::size_t>(s)];
      if (!sum.empty()) REQUIRE(sum.size() == part);
      for (std::size_t k = 0; k < sum.size(); ++k) own[k] = updated(own[k], sum[k]);
      std::ranges::fill(gradients[static_cast<std::size_t>(s)], 0.0F);
    }
  }

  int stages_, microbatches_, replicas_, replica_;
  std::vector<std::vector<float>> gradients;
};

//! The same weights without a pipeline, after so many steps.
std::vector<std::vector<float>> reference(int stages, int microbatches, int slices, int steps) {
  std::vector<std::vector<float>> weights;
  for (int stage = 0; stage < stages; ++stage) {
    auto& row = weights.emplace_back();
    for (int k = 0; k < width; ++k) row.push_back(initial(stage, k));
  }
  for (int step = 0; step < steps; ++step)
    for (std::size_t k = 0; k < width; ++k) {
      std::vector<float> gradients(weights.size());
      for (int i = 0; i < microbatches * slices; ++i) {
        std::vector<float> x{data(i / slices, i % slices, static_cast<int>(k))};
        for (const auto& row : weights) x.push_back(row[k] * x.back());
        float arrived = loss_gradient(x.back());
        for (std::size_t stage = weights.size(); stage-- > 0; arrived *= weights[stage][k])
          gradients[stage] += arrived * x[stage];
      }
      for (std::size_t stage = 0; stage < weights.size(); ++stage)
        weights[stage][k] = updated(weights[stage][k], gradients[stage]);
    }
  return weights;
}

template <class Overlap>
void train(const schedule::any& schedule, const shape& sizes, int most, int replicas, int shards,
           const Overlap& overlap) {
  CAPTURE(schedule.name);
  CAPTURE(sizes.ranks);
  CAPTURE(sizes.slices);
  CAPTURE(most);
  CAPTURE(replicas);
  CAPTURE(shards);
  const placement where = place(schedule.placed(), sizes);
  const job_table costs(sizes.ranks, where.chunks);
  plan_request wanted;
  constexpr std::int64_t row = width * sizeof(float);
  wanted.stages = {{.output = row, .stash = row, .gradients = row, .weights = row}};
  wanted.data_parallel = true;
  wanted.gathered = most;
  const planned base(schedule, sizes, costs.view(), overlap, wanted);
  REQUIRE(base.answer() == verdict{});
  const shared workers(base.plans(), shards, replicas);
  REQUIRE(workers.answer() == verdict{});
  const int each = replicas * shards;
  std::vector<std::unique_ptr<sharded_stage>> stages;
  std::vector<executor::stage*> pointers;
  for (int worker = 0; worker < sizes.ranks * each; ++worker) {
    stages.push_back(std::make_unique<sharded_stage>(where.stages(), sizes.microbatches, replicas,
                                                     shards, worker));
    pointers.push_back(stages.back().get());
  }
  executor::options with;
  with.poison = with.checked = true;
  executor::engine engine(workers, pointers, std::move(with));
  constexpr int steps = 3;
  for (int step = 0; step < steps; ++step) engine.step();

  const auto expected =
      reference(where.stages(), replicas * sizes.microbatches, sizes.slices, steps);
  const int part = width / replicas;
  for (int stage = 0; stage < where.stages(); ++stage)
    for (const int microbatch : {0, sizes.microbatches - 1}) {
      const int rank = where.rank_of(stage, microbatch);
      for (int worker = 0; worker < each; ++worker) {
        const auto& own = stages[static_cast<std::size_t>(rank * each + worker)]
                              ->weights[static_cast<std::size_t>(stage)];
        const auto* const from =
            expected[static_cast<std::size_t>(stage)].data() + worker / shards * part;
        CHECK(std::equal(own.begin(), own.end(), from, from + part));
      }
    }
  CHECK(stages[0]->dropped > 0);
}

}  // namespace

TEST_CASE("replicas with a part of the weights each update them as one with all does, to the bit") {
  int runs = 0;
  for (const schedule::any& schedule : support::schedules()) {
    if (schedule.forward_only) continue;
    for (const int chunks : {1, 2})
      for (const int slices : {1, 2}) {
        const shape sizes{.ranks = 2, .microbatches = 4, .chunks = chunks, .slices = slices};
        if (!schedule.supports(sizes).ok()) continue;
        const int replicas = runs % 3 == 0 ? 3 : 2, shards = runs % 4 == 0 ? 2 : 1;
        const int most = runs % 2 == 0 ? 2 : 3;
        if (runs % 2 == 0)
          train(schedule, sizes, most, replicas, shards, overlap::separate{});
        else
          train(schedule, sizes, most, replicas, shards, overlap::serial{});
        ++runs;
      }
  }
  CHECK(runs > 25);
}

TEST_CASE("one stage's weights at once, and nobody to gather from") {
  const schedule::any interleaved(schedule::interleaved{});
  train(interleaved, {.ranks = 3, .microbatches = 6, .chunks = 3}, 1, 4, 1, overlap::separate{});
  train(interleaved, {.ranks = 2, .microbatches = 4, .chunks = 2}, 1, 1, 1, overlap::separate{});
  train(schedule::any(schedule::one_f_one_b{}), {.ranks = 1, .microbatches = 3}, 1, 2, 1,
        overlap::separate{});
}

TEST_CASE("gathers and sums of a group follow one another, whoever comes late") {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    gathering run;
    executor::callback_stage stage(run.callbacks);
    executor::stage* const stages[] = {&stage, &stage, &stage};
    executor::options with;
    with.delay = {seed, std::chrono::microseconds(100)};
    if (seed == 2) with.issue = executor::issuing::thread_per_rank;
    with.host.queue_depth = seed == 3 ? 1 : 16;
    executor::engine engine(views(run.plans), stages, std::move(with));
    for (int step = 0; step < 10; ++step) engine.step();
    CHECK(run.wrong == 0);
    CHECK(run.checked == 60);
  }
}

namespace {

//! A forward of two ops with a sum over the shards in between.
struct summed_forwards {
  program_chain programs(int) const {
    program_chain made;
    for (const int chunk : {0, 1}) {
      const auto sum = made.buffer("sum", 64);
      made.begin(job_kind::forward, chunk);
      made.add("make", {writes(sum)}, {.time = 1});
      made.add("sum", {reads(sum), writes(sum)}, {.time = 4, .stream = 7, .collective = true});
      made.add("take", {reads(sum)}, {.time = 1});
    }
    return made;
  }
  std::vector<std::int32_t> order(const op_graph& graph) const {
    return overlap::program_order(graph);
  }
};

}  // namespace

TEST_CASE("ops that compute are given their job's weights, from the first to the last") {
  plan_request wanted;
  wanted.data_parallel = true;
  wanted.gathered = 1;
  wanted.stages = {{.output = 64, .stash = 64, .gradients = 64, .weights = 128}};
  const job_table costs(2, 2);
  const planned base(schedule::interleaved{}, {.ranks = 2, .microbatches = 4, .chunks = 2},
                     costs.view(), overlap::separate{}, wanted);
  REQUIRE(base.answer() == verdict{});
  std::vector<stream_info> streams;
  for (int stream = 0; stream < 7; ++stream) streams.push_back(overlap::separate{}.stream(stream));
  streams.push_back(overlap::named_stream("sums", -1));
  const expanded made(base, streams, summed_forwards{});
  REQUIRE(made.answer() == verdict{});
  const shared workers(made.plans(), 2, 2);
  REQUIRE(workers.answer() == verdict{});
  const auto value = [](int replica, int stage) {
    return static_cast<float>(10 * replica + stage);
  };
  std::atomic<int> wrong{0}, ops{0};
  executor::callback_stage stage(
      {.forward =
           [&](const executor::context& at) {
             const std::span<float> all = at.view<float>(buffer_role::weights);
             wrong += all.size() == 32 ? 0 : 1;
             for (std::size_t k = 0; k < all.size(); ++k)
               wrong += all[k] == value(static_cast<int>(k / 16), at.what.stage) ? 0 : 1;
             ++ops;
           },
       .backward =
           [&](const executor::context& at) { wrong += at.weights().size() == 128 ? 0 : 1; },
       .unshard =
           [&](const executor::context& at) {
             const std::span<std::byte> own = at.own_weights();
             std::ranges::fill(std::span(reinterpret_cast<float*>(own.data()), own.size() / 4),
                               value(at.rank / 2 % 2, at.what.stage));
           },
       .reduce_grad = [](const executor::context&) {},
       .optimizer = [](const executor::context&) {}});
  const std::vector<executor::stage*> all(workers.plans().size(), &stage);
  executor::options with;
  with.poison = with.checked = true;
  executor::engine engine(workers, all, std::move(with));
  for (int step = 0; step < 2; ++step) engine.step();
  CHECK(wrong == 0);
  CHECK(ops == 2 * 8 * 2 * 8);  // steps, workers, ops, jobs of a rank
}

TEST_CASE("gathers, and sums of parts, that do not fit are refused by name") {
  const auto refused = [](auto spoil) {
    gathering run;
    spoil(run.plans);
    executor::callback_stage stage(run.callbacks);
    executor::stage* const stages[] = {&stage, &stage, &stage};
    return refusal_of([&] { executor::engine(views(run.plans), stages); });
  };
  const auto gather = [](plan_builder& plan, int number) -> instruction& {
    for (instruction& each : plan.instructions)
      if (each.act == action::all_gather && number-- == 0) return each;
    throw std::logic_error("there is no such gather");
  };
  using plans = std::vector<plan_builder>;
  expect_part(
      refused([&](plans& p) { p[1].buffers[0].bytes = 59; }),
      "rank 1, instruction 1, 0ALL_GATHER0 (all-gather, group 0): its buffer of 59 bytes is "
      "not dealt evenly to the 3 members of its group");
  expect_part(refused([&](plans& p) { gather(p[2], 0).use_count = 0; }),
              "an all-gather has exactly one buffer");
  expect_part(refused([&](plans& p) { gather(p[2], 1).peer = 1; }), "group 1 does not exist");
  expect_part(refused([&](plans& p) { p[1].buffers[0].bytes = 48; }),
              "group 0: ranks 0 and 1 differ in what it gathers, or when");
  expect_part(refused([&](plans& p) { gather(p[1], 1).act = action::run; }),
              "group 0: ranks 0 and 1 differ in how often it sums or gathers");
  expect_part(refused([&](plans& p) { std::swap(gather(p[1], 0).act, p[1].instructions[3].act); }),
              "group 0: ranks 0 and 1 differ in what it gathers, or when");
  const auto dealt = [](plan_builder& plan) -> instruction& {
    return *std::ranges::find(plan.instructions, action::reduce_scatter, &instruction::act);
  };
  expect_part(
      refused([&](plans& p) {
        for (plan_builder& plan : p) plan.groups[0].elements = 5;
      }),
      "rank 0, instruction 4, 0ALL_REDUCE0 (all-reduce, group 0): the 5 elements that it sums "
      "are not dealt evenly to the 3 members of its group");
  expect_part(refused([&](plans& p) { dealt(p[1]).act = action::all_reduce; }),
              "group 0: ranks 0 and 1 differ in what it gathers, or when");
  expect_part(refused([&](plans& p) { dealt(p[2]).use_count = 0; }),
              "a sum has exactly one buffer");
  expect_part(refused([&](plans& p) { p[1].buffers[2].bytes = 20; }),
              "its buffer of 20 bytes does not hold the group's 6 elements of 4");
  expect_part(refused([&](plans& p) { p[1].buffers[2].bytes = 36; }),
              "its buffer of 36 bytes holds more than the group's 6 elements of 4, of which each "
              "member gets a part");
  // A stage that does not say what it does with them.
  gathering run;
  run.callbacks.unshard = {};
  executor::callback_stage stage(run.callbacks);
  executor::stage* const stages[] = {&stage, &stage, &stage};
  expect_part(refusal_of([&] { executor::engine(views(run.plans), stages); }),
              "rank 0, instruction 0, 0UNSHARD (stage 0, gather of weights): the rank's stage does "
              "not serve this kind");
}
