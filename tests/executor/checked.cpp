// The check of what is issued: silent where plans are in order, and where one is not, it names what
// races with what.
#include <doctest/doctest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "failures.hpp"
#include "laws/oracle_plans.hpp"
#include "laws/oracle_race.hpp"
#include "pipeline.hpp"
#include "stretto/executor/checked_device.hpp"
#include "stretto/executor/describe.hpp"
#include "stretto/executor/engine.hpp"
#include "stretto/executor/loopback_transport.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/expanded.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/shared.hpp"
#include "stretto/schedule/dualpipe.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "stretto/schedule/seq_1f1b.hpp"
#include "stretto/schedule/zb_h1.hpp"
#include "stretto/schedule/zbv.hpp"
#include "support/two_products.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

struct idle_stage final : executor::stage {
  void run(const executor::context&) override {}
};

executor::options checking(int capacity = 0) {
  executor::options with;
  with.checked = true;
  with.capacity = capacity;
  return with;
}

void run_steps(std::span<const plan_view> plans, int steps, executor::options with) {
  idle_stage stage;
  const std::vector<executor::stage*> stages(plans.size(), &stage);
  executor::engine engine(plans, stages, std::move(with));
  for (int step = 0; step < steps; ++step) engine.step();
}

plan_request request(const memory::offload_window& offload = {}) {
  plan_request made;
  made.stages = {{.output = 640, .stash = 6400, .gradients = 640, .kept = 128}};
  made.offload = offload;
  return made;
}

//! @return a plan's arrays, open to change
plan_builder opened(const plan_view& plan) {
  plan_builder made(plan.rank, plan.ranks, {});
  made.head = plan;
  made.instructions.assign(plan.instructions.begin(), plan.instructions.end());
  made.waits.assign(plan.waits.begin(), plan.waits.end());
  made.uses.assign(plan.uses.begin(), plan.uses.end());
  made.released.assign(plan.released.begin(), plan.released.end());
  made.buffers.assign(plan.buffers.begin(), plan.buffers.end());
  made.streams.assign(plan.streams.begin(), plan.streams.end());
  made.groups.assign(plan.groups.begin(), plan.groups.end());
  made.members.assign(plan.members.begin(), plan.members.end());
  return made;
}

//! Runs nothing: steps end as they are issued.
class walked_device final : public executor::device {
 public:
  explicit walked_device(const plan_view& plan)
      : streams_(static_cast<int>(plan.streams.size())),
        memory_(static_cast<std::size_t>(plan.arena_bytes + plan.host_bytes)),
        arena_bytes_(static_cast<std::size_t>(plan.arena_bytes)) {}
  void enqueue(int, const executor::command&) override {}
  void record(int, int, std::int64_t) override {}
  void wait(int, int, std::int64_t) override {}
  void end_step(int, std::int64_t, executor::monitor& watch) override { watch.rank_ended(); }
  void submit() override {}
  std::span<std::byte> arena() override { return std::span(memory_).first(arena_bytes_); }
  std::span<std::byte> host_memory() override { return std::span(memory_).subspan(arena_bytes_); }
  executor::stream_handle stream(int index) const override { return {index, 0, nullptr}; }
  int streams() const override { return streams_; }
  executor::progress progress_of(int) const override { return {}; }
  void wake() noexcept override {}
  int join(executor::time_point) noexcept override { return 0; }

 private:
  int streams_;
  std::vector<std::byte> memory_;
  std::size_t arena_bytes_;
};

//! What three steps are refused for, if they are: a race, or an end that comes too early.
std::string found_in(std::span<const plan_view> plans, int capacity = 0) {
  executor::options with = checking(capacity);
  with.make_device = [](const plan_view& plan, executor::monitor&) {
    return std::make_unique<walked_device>(plan);
  };
  try {
    run_steps(plans, 3, std::move(with));
  } catch (const executor::execution_error& error) {
    CHECK(error.kind() == executor::failure::race);
    return error.what();
  } catch (const executor::plan_error& error) {
    return error.what();
  }
  return "";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

//! Of each kind of schedule, with their plans.
template <class Visitor>
void for_each_plan(Visitor&& visit) {
  const auto one = [&](const auto& schedule, const shape& sizes,
                       const memory::offload_window& offload = {}) {
    CAPTURE(std::string(schedule.name));
    const job_table costs(sizes.ranks, stretto::place(schedule.placed(), sizes).chunks);
    const planned made(schedule, sizes, costs.view(), overlap::separate{}, request(offload));
    REQUIRE(made.answer() == verdict{});
    visit(made);
  };
  one(schedule::one_f_one_b{}, {.ranks = 3, .microbatches = 6});
  one(schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 6}, memory::offload_all);
  one(schedule::interleaved{}, {.ranks = 3, .microbatches = 6, .chunks = 2});
  one(schedule::seq_1f1b{}, {.ranks = 2, .microbatches = 3, .slices = 2});
  one(schedule::zb_h1{}, {.ranks = 3, .microbatches = 4});
  one(schedule::zbv{}, {.ranks = 2, .microbatches = 4, .chunks = 2});
  one(schedule::dualpipe{}, {.ranks = 4, .microbatches = 8});
}

//! Stream 0 writes, stream 1 reads what it wrote, stream 0 writes it again.
plan_builder two_streams() {
  plan_builder plan(0, 1, {"compute", "copies"});
  plan.head.microbatches = 3;
  const int value = plan.add_buffer(buffer_role::stash, 0, 0, 128);
  const int wrote = plan.run({0, 0, 0, job_kind::forward}, 0,
                             {{value, buffer_role::stash, access::write}});
  const int read = plan.run({0, 0, 0, job_kind::backward}, 1,
                            {{value, buffer_role::stash, access::read}}, {wrote});
  plan.run({0, 1, 0, job_kind::forward}, 0, {{value, buffer_role::stash, access::write}}, {read});
  plan.end();
  return plan;
}

std::string found_in(const plan_builder& plan) {
  const std::vector<plan_view> plans{plan.view()};
  return found_in(plans);
}

}  // namespace

TEST_CASE("plans that are in order are run as they are: jobs, copies, messages") {
  for_each_plan([](const planned& made) {
    for (const int capacity : {0, 2}) CHECK(found_in(made.plans(), capacity) == "");
    run_steps(made.plans(), 2, checking());
  });
}

TEST_CASE("so are plans of ops") {
  const auto expand = [](const auto& schedule, const shape& sizes, const auto& ops) {
    const job_table costs(sizes.ranks, stretto::place(schedule.placed(), sizes).chunks);
    const planned base(schedule, sizes, costs.view(), overlap::separate{}, request());
    const auto streams = ops.streams();
    const stretto::expanded made(base, streams, ops);
    REQUIRE(made.answer() == verdict{});
    const shared workers(made.plans(), 2);
    CHECK(found_in(workers.plans()) == "");
    run_steps(workers.plans(), 2, checking());
  };
  using support::op_order;
  expand(schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 4},
         support::two_products<op_order::input_gradient_first, 0, 2>{});
  expand(schedule::interleaved{}, {.ranks = 2, .microbatches = 4, .chunks = 2},
         support::two_products<op_order::look_ahead, 8, 2>{});
}

TEST_CASE("every wait for data, and for the step before, is missed when it is gone") {
  int removed = 0, races = 0;
  for_each_plan([&](const planned& made) {
    std::vector<plan_view> plans(made.plans().begin(), made.plans().end());
    for (plan_view& plan : plans) {
      const plan_view whole = plan;
      for (std::size_t at = 0; at < whole.instructions.size(); ++at)
        for (int wait = 0; wait < whole.instructions[at].wait_count; ++wait) {
          plan_builder spoilt = opened(whole);
          instruction& mine = spoilt.instructions[at];
          const auto which = static_cast<std::size_t>(mine.first_wait + wait);
          if (whole.waits[which].why != wait_reason::data &&
              whole.waits[which].why != wait_reason::gate)
            continue;
          std::swap(spoilt.waits[which],
                    spoilt.waits[static_cast<std::size_t>(mine.first_wait + mine.wait_count - 1)]);
          --mine.wait_count;
          plan = spoilt.view();
          const std::string found = found_in(plans);
          CAPTURE(executor::describe(whole, static_cast<int>(at)));
          ++removed;
          // Some end by another way than through who waited for them, and are missed before a step.
          if (has(found, "the end of the step does not wait for it")) continue;
          // A message tells its receiver all that its sender knows: with clocks of all ranks that
          // the rank's last step has ended, where plans are proven with those of neighbours.
          if (found.empty()) {
            CHECK(whole.waits[which].why == wait_reason::gate);
            CHECK(whole.instructions[at].act == action::receive);
            continue;
          }
          CHECK(has(found, "a race on bytes ["));
          ++races;
        }
      plan = whole;
    }
  });
  MESSAGE(removed, " waits removed, ", races, " races");
  CHECK(races > 300);
}

TEST_CASE("of plans spoilt at random, those with races are found, and no others") {
  using oracle::flaw;
  std::minstd_rand random(1);
  const auto pick = [&](auto& from) -> auto& { return from[random() % from.size()]; };
  int raced = 0, silent = 0;
  for_each_plan([&](const planned& made) {
    const oracle::loose_plans sound(made.plans());
    for (int times = 0; times < 300; ++times) {
      oracle::loose_plans spoilt = sound;
      oracle::loose_plan& plan = pick(spoilt.ranks);
      oracle::loose_instruction& one = pick(plan.list);
      switch (random() % 5) {
        case 0:
          if (!one.waits.empty()) one.waits.erase(one.waits.begin());
          break;
        case 1:
          if (!one.waits.empty()) one.waits[0].previous_step = !one.waits[0].previous_step;
          break;
        case 2:
          std::swap(one.itself.stream, pick(plan.list).itself.stream);
          break;
        case 3:
          pick(plan.buffers).offset = pick(plan.buffers).offset;
          break;
        default:
          pick(plan.buffers).release -= 1 + static_cast<int>(random() % 3);
          spoilt.settle_releases();
      }
      const int capacity = static_cast<int>(random() % 2);
      const auto views = spoilt.views();
      const std::string found = found_in(views, capacity);
      const bool race = has(found, "a race on bytes") || has(found, "nobody has recorded");
      if (!found.empty() && !race) continue;  // no plan to begin with
      const auto judge =
          oracle::two_steps(views, capacity == 0 ? oracle::carried::rendezvous
                                                 : oracle::carried::buffered)
              .found();
      CAPTURE(found);
      CAPTURE(judge.words());
      if (race) CHECK(judge.what != flaw::none);
      if (judge.what == flaw::race || judge.what == flaw::release) CHECK(race);
      ++(race ? raced : silent);
    }
  });
  MESSAGE(raced, " with a race, ", silent, " without");
  CHECK(raced > 300);
  CHECK(silent > 300);
}

TEST_CASE("both instructions are named, with rank, bytes, streams and steps") {
  plan_builder plan = two_streams();
  CHECK(found_in(plan) == "");
  plan.instructions[1].wait_count = 0;
  const std::string found = found_in(plan);
  expect_part(found,
              "step 0, rank 0, instruction 1, 0B0 (stage 0, backward, micro-batch 0): a race "
              "on bytes [0, 128) of rank 0");
  expect_part(found, "the read by rank 0, instruction 1, 0B0");
  expect_part(found, "stream copies, has no order with the write by rank 0, instruction 0, 0F0");
  expect_part(found, "step 0, stream compute");
}

TEST_CASE("another stream, an early release, a step that begins too early are found") {
  SUBCASE("another stream") {
    plan_builder plan(0, 1, {"compute", "copies"});
    const int value = plan.add_buffer(buffer_role::stash, 0, 0, 64);
    plan.run({0, 0, 0, job_kind::forward}, 0, {{value, buffer_role::stash, access::write}});
    const int read = plan.run({0, 0, 0, job_kind::backward}, 0,
                              {{value, buffer_role::stash, access::read}});
    plan.run({0, 1, 0, job_kind::forward}, 1, {{value, buffer_role::stash, access::write}}, {read});
    plan.end();
    plan.head.microbatches = 2;
    CHECK(found_in(plan) == "");
    plan.instructions[1].stream = 1;
    expect_part(found_in(plan), "the read by rank 0, instruction 1, 0B0");
    expect_part(found_in(plan), "no order with the write by rank 0, instruction 0, 0F0");
  }
  SUBCASE("a release before the reader is done") {
    plan_builder plan = two_streams();
    plan.instructions[2].use_count = 0;
    plan.instructions[2].wait_count = 0;
    plan.release(0, 3);
    CHECK(found_in(plan) == "");
    // The end of the step comes after the reader; what stands before it does not.
    const int idle = 2;
    plan.run({0, 2, 0, job_kind::forward}, 0);
    std::swap(plan.instructions[3], plan.instructions[4]);
    plan.release(0, idle + 1);
    expect_part(found_in(plan), "the release by rank 0, instruction 3, 0F2");
    expect_part(found_in(plan), "the read by rank 0, instruction 1, 0B0");
  }
  SUBCASE("bytes of another buffer") {
    plan_builder plan = two_streams();
    plan.instructions[2].wait_count = 0;
    const int other = plan.add_buffer(buffer_role::output, 0, 1, 64);
    plan.buffers[static_cast<std::size_t>(other)].release = 4;
    plan.uses[static_cast<std::size_t>(plan.instructions[2].first_use)].buffer = other;
    CHECK(found_in(plan) == "");
    plan.buffers[static_cast<std::size_t>(other)].offset = 64;
    expect_part(found_in(plan), "a race on bytes [64, 128) of rank 0");
  }
  SUBCASE("the step before") {
    plan_builder plan = two_streams();
    // The reader takes the last step's value, without a word to who writes it now.
    plan.instructions[1].wait_count = 0;
    plan.instructions[0].use_count = 0;
    plan.instructions[2].first_use = plan.instructions[0].first_use;
    const std::string found = found_in(plan);
    expect_part(found, "step 1, rank 0, instruction 1, 0B0");
    expect_part(found, "the write by rank 0, instruction 2, 0F1");
    expect_part(found, "micro-batch 1), step 0");
  }
}

TEST_CASE("a wait for what nobody has recorded, and options that cannot be checked, are refused") {
  const plan_builder plan = two_streams();
  const std::vector<plan_view> plans{plan.view()};
  const auto races = executor::make_race_check(plans);
  const auto on =
      executor::make_checked_device(std::make_unique<walked_device>(plans[0]), races, 0);
  on->wait(1, 0, -1);
  CHECK_THROWS_WITH_AS(on->wait(1, 0, 0), doctest::Contains("stream copies of rank 0 waits for "
                                                            "event 0, which nobody has recorded"),
                       executor::race_error);
  on->record(0, 0, 0);
  on->wait(1, 0, 0);
  executor::options with = checking();
  with.issue = executor::issuing::thread_per_rank;
  CHECK_THROWS_WITH_AS(run_steps(plans, 1, std::move(with)), doctest::Contains("races are checked"),
                       executor::plan_error);
}

TEST_CASE("a rank that is in no group needs to know of none") {
  std::vector<plan_builder> plans;
  for (int rank = 0; rank < 3; ++rank) {
    plans.push_back(plan_builder(rank, 3, {"compute"}));
    if (rank > 0) {
      plans.back().add_group({1, 2}, 16, false);
      plans.back().all_reduce(0, 0, plans.back().add_buffer(buffer_role::collective, 0, 0, 64));
    }
    plans.back().end();
  }
  run_steps(views(plans), 3, checking());
}

TEST_CASE("what has no plan, no device or two of a rank is not checked") {
  const plan_builder one(0, 2, {"compute"});
  CHECK_THROWS_WITH_AS(executor::make_race_check(std::vector<plan_view>{one.view(), one.view()}),
                       "rank 0 has two plans", executor::plan_error);
  const plan_builder alone(0, 1, {"compute"});
  const std::vector<plan_view> plans{alone.view()};
  const auto races = executor::make_race_check(plans);
  CHECK_THROWS_AS(executor::make_checked_device(nullptr, races, 0), executor::plan_error);
  CHECK_THROWS_AS(
      executor::make_checked_device(std::make_unique<walked_device>(plans[0]), nullptr, 0),
      executor::plan_error);
}

TEST_CASE("a transport that takes messages ahead is no rendezvous, whoever has made it") {
  // Rank 0 reads what it receives without a wait, because what it sends beside it must have met.
  plan_builder one(0, 2, {"compute", "sends", "receives"}), other(1, 2, {"compute"});
  const int came = one.add_buffer(buffer_role::output_gradient, 0, 0, 64);
  const int sent = one.add_buffer(buffer_role::output, 0, 0, 64);
  const int made = other.add_buffer(buffer_role::input_gradient, 1, 0, 64);
  const int taken = other.add_buffer(buffer_role::input, 1, 0, 64);
  one.receive({0, 0, 0, job_kind::receive_backward}, 2, 1, came);
  one.send({0, 0, 0, job_kind::send_forward}, 1, 1, sent);
  one.run({0, 0, 0, job_kind::backward}, 1, {{came, buffer_role::output_gradient, access::read}});
  one.end();
  other.run({1, 0, 0, job_kind::forward}, 0, {{made, buffer_role::input_gradient, access::write}});
  other.send({1, 0, 0, job_kind::send_backward}, 0, 0, made);
  other.receive({1, 0, 0, job_kind::receive_forward}, 0, 0, taken);
  other.end();
  const plan_view plans[] = {one.view(), other.view()};
  struct : executor::stage {
    void run(const executor::context&) override {}
  } stage;
  executor::stage* const stages[] = {&stage, &stage};
  const auto run = [&](int capacity, bool as_wire) {
    executor::options with;
    with.checked = true;
    if (as_wire)
      with.wire = executor::make_loopback_transport(capacity);
    else
      with.capacity = capacity;
    executor::engine engine(plans, stages, std::move(with));
    engine.step();
  };
  CHECK(executor::make_loopback_transport(0)->rendezvous());
  CHECK_FALSE(executor::make_loopback_transport(2)->rendezvous());
  for (const bool as_wire : {false, true}) {
    CAPTURE(as_wire);
    CHECK_THROWS_WITH_AS(run(2, as_wire), doctest::Contains("a race on bytes [0, 64) of rank 0"),
                         executor::execution_error);
  }
}
