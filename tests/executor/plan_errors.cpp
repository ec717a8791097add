// Plans that cannot be run are refused before the first step, with rank, instruction and rule.
#include <functional>
#include <string>
#include <vector>

#include "failures.hpp"
#include "pipeline.hpp"
#include "stretto/executor/describe.hpp"
#include "stretto/executor/meetings.hpp"
#include "stretto/executor/validate.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/shared.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

using plans = std::vector<plan_builder>;

struct mistake {
  std::function<void(plans&)> make;
  std::string part;  // of what is said
};

//! Three ranks, two micro-batches, streams of their own, and a group that sums at the end.
plans good_plans() {
  plans all = pipeline_plans(3, 2, 16, layout::separate);
  for (plan_builder& plan : all) {
    plan.instructions.pop_back();
    plan.waits.resize(static_cast<std::size_t>(plan.instructions.back().first_wait +
                                               plan.instructions.back().wait_count));
    plan.add_group({0, 1, 2}, 4, true);
    const int where = plan.add_buffer(buffer_role::collective, 0, 0, 32);
    plan.run({plan.head.rank, 0, 0, job_kind::reduce_grad}, 0,
             {{where, buffer_role::collective, access::write}});
    plan.all_reduce(0, 0, where);
    plan.end();
  }
  return all;
}

void refuses_each(const std::vector<mistake>& mistakes) {
  for (const mistake& each : mistakes) {
    plans spoiled = good_plans();
    each.make(spoiled);
    const std::vector<plan_view> given = views(spoiled);
    expect_part(refusal_of([&] { executor::validate(given); }), each.part);
    // The engine asks the same before it makes anything.
    sample_stages stages(static_cast<int>(given.size()));
    refusal_of([&] { executor::engine(given, stages.pointers); });
  }
}

//! Of what its first instruction with the action moves, all uses being of whole buffers yet.
byte_range& range_of(plan_builder& plan, action act) {
  plan.ranges.clear();
  for (std::size_t use = 0; use < plan.uses.size(); ++use)
    plan.ranges.push_back({0, plan.buffers[static_cast<std::size_t>(plan.uses[use].buffer)].bytes});
  return plan.ranges[static_cast<std::size_t>(plan.at(nth(plan, act)).first_use)];
}
int last_of(plan_builder& plan) {
  return static_cast<int>(plan.instructions.size()) - 1;
}

}  // namespace

TEST_CASE("the plans that the mistakes are made in are good") {
  const plans all = good_plans();
  CHECK_NOTHROW(executor::validate(views(all)));
}

TEST_CASE("numbers out of range") {
  refuses_each({
      {[](plans& p) { p[1].head.rank = 3; }, "plan of rank 3: the rank must be below"},
      {[](plans& p) { p[1].head.rank = -1; }, "plan of rank -1: the rank must be below"},
      {[](plans& p) { p[0].head.ranks = 0; }, "at least one rank"},
      {[](plans& p) { p[1].head.ranks = INT32_MAX; },
       "there are 2147483647 ranks, at most 16777216"},
      {[](plans& p) { p[1].head.events = -1; }, "number of events is negative"},
      {[](plans& p) { p[1].head.events = INT32_MAX; },
       "plan of rank 1: there are 2147483647 events, and its "},
      {[](plans& p) { p[1].head.events = 2 * last_of(p[1]) + 3; },
       "instructions record two each at most"},
      {[](plans& p) { p[1].head.arena_bytes = -64; }, "arena is negative"},
      {[](plans& p) { p[1].streams.clear(); }, "there is no stream"},
      {[](plans& p) { p[1].streams.resize(9); }, "there are 9 streams, at most 8"},
      {[](plans& p) { p[1].instructions.clear(); }, "there is no instruction"},
      {[](plans& p) { p[1].at(2).stream = 5; }, "rank 1, instruction 2"},
      {[](plans& p) { p[1].at(2).stream = 5; }, "stream 5 does not exist"},
      {[](plans& p) { p[1].at(2).first_wait = 1000; }, "waits lie outside"},
      {[](plans& p) { p[1].at(2).wait_count = -1; }, "waits lie outside"},
      {[](plans& p) { p[1].at(2).first_use = -1; }, "buffers lie outside"},
      {[](plans& p) { p[1].at(2).release_count = 1; }, "released buffers lie outside"},
      {[](plans& p) { p[1].at(2).record = 1000; }, "recorded event 1000 does not exist"},
      {[](plans& p) { p[1].waits[0].event = 1000; }, "event 1000, waited for, does not exist"},
      {[](plans& p) { p[1].waits[0].event = -1; }, "event -1, waited for, does not exist"},
      {[](plans& p) { p[1].uses[1].buffer = 1000; }, "buffer 1000 does not exist"},
      {[](plans& p) { p[1].uses[1].role = static_cast<buffer_role>(99); }, "unknown role"},
      {[](plans& p) { p[1].at(2).act = static_cast<action>(99); }, "job kind or action is unknown"},
      {[](plans& p) { p[1].at(2).what.kind = static_cast<job_kind>(99); }, "unknown"},
      {[](plans& p) { p[1].at(nth(p[1], action::send)).what.stage = INT32_MAX; },
       "its stage 2147483647 does not exist"},
      {[](plans& p) { p[1].at(nth(p[1], action::receive)).what.stage = -1; },
       "its stage -1 does not exist"},
  });
}

TEST_CASE("released buffers that do not exist") {
  refuses_each({{[](plans& p) {
                   p[1].released = {1000};
                   p[1].at(2).release_count = 1;
                 },
                 "released buffer 1000 does not exist"}});
}

TEST_CASE("buffers released before or after their end") {
  const auto release = [](plan_builder& plan, int at) {
    plan.release(3, at);
    plan.buffers[3].release = at + 1;
  };
  refuses_each({{[&](plans& p) { release(p[1], 7); },
                 "rank 1, instruction 7, 1B0 (stage 1, backward, micro-batch 0): released buffer 3 "
                 "lives until instruction 8"}});
}

TEST_CASE("buffers outside the arena or their life") {
  refuses_each({
      {[](plans& p) { p[1].buffers[2].offset = p[1].head.arena_bytes; }, "buffer 2 lies outside"},
      {[](plans& p) { p[1].buffers[2].offset = -64; }, "buffer 2 lies outside the arena"},
      {[](plans& p) { p[1].buffers[2].bytes = -1; }, "buffer 2 lies outside the arena"},
      {[](plans& p) { p[1].buffers[2].bytes = INT64_MAX; }, "buffer 2 lies outside the arena"},
      {[](plans& p) { p[1].buffers[2].offset += 4; }, "buffer 2 is not aligned"},
      {[](plans& p) { p[1].buffers[2].release = 1000; }, "buffer 2 has a life outside"},
      {[](plans& p) { p[1].buffers[2].first = -1; }, "buffer 2 has a life outside"},
      {[](plans& p) { p[1].buffers[0].first = 1; }, "buffer 0 is used outside its life"},
      {[](plans& p) { p[1].buffers[0].release = 1; }, "buffer 0 is used outside its life"},
  });
}

TEST_CASE("events that order nothing or too late") {
  refuses_each({
      {[](plans& p) {
         const int first = nth(p[1], action::receive, 0);
         const int second = nth(p[1], action::receive, 1);
         p[1].at(second).record = p[1].at(first).record;
       },
       "is already recorded by instruction 0"},
      {[](plans& p) { p[1].at(nth(p[1], action::receive, 1)).record = -1; }, "is never recorded"},
      {[](plans& p) {
         const int forward = nth(p[1], action::run, 0);
         const int later = nth(p[1], action::receive, 1);
         p[1].waits[static_cast<std::size_t>(p[1].at(forward).first_wait)].event =
             p[1].at(later).record;
       },
       "is waited for before instruction"},
      {[](plans& p) { p[1].at(last_of(p[1])).wait_count = 0; },
       "end of the step does not wait for it"},
  });
  // The event of the previous step may stand anywhere.
  plans all = good_plans();
  const int forward = nth(all[1], action::run, 0);
  const int later = nth(all[1], action::receive, 1);
  event_wait& wait = all[1].waits[static_cast<std::size_t>(all[1].at(forward).first_wait)];
  all[1].at(forward).stream = all[1].at(nth(all[1], action::receive, 0)).stream;
  wait = {all[1].at(later).record, wait_reason::gate, true};
  CHECK_NOTHROW(executor::validate(all[1].view()));
}

TEST_CASE("the end of the step stands last, once") {
  refuses_each({
      {[](plans& p) { p[2].at(last_of(p[2])).act = action::run; }, "must be the end of the step"},
      {[](plans& p) { p[2].at(0).act = action::end_step; }, "must be the last instruction"},
  });
}

TEST_CASE("messages and collectives that are none") {
  refuses_each({
      {[](plans& p) { p[0].at(nth(p[0], action::send)).peer = 0; }, "peer 0 is no other rank"},
      {[](plans& p) { p[0].at(nth(p[0], action::send)).peer = 3; }, "peer 3 is no other rank"},
      {[](plans& p) { p[0].at(nth(p[0], action::send)).use_count = 0; }, "exactly one buffer"},
      {[](plans& p) { p[0].at(nth(p[0], action::send)).what.kind = job_kind::forward; },
       "its job is no send"},
      {[](plans& p) { p[0].at(nth(p[0], action::receive)).what.kind = job_kind::forward; },
       "its job does not"},
      {[](plans& p) { p[2].at(nth(p[2], action::all_reduce)).peer = 1; }, "group 1 does not exist"},
      {[](plans& p) { p[2].at(nth(p[2], action::all_reduce)).use_count = 0; },
       "a sum has exactly one buffer"},
      {[](plans& p) {
         p[2].members = {0, 1, 1};
       },
       "group 0 has member 1 twice"},
      {[](plans& p) {
         p[2].members = {0, 1, 3};
       },
       "group 0 has member 3, which is no rank"},
      {[](plans& p) { p[2].groups[0].count = 2; }, "the rank is no member of its group 0"},
      {[](plans& p) { p[2].groups[0].count = 0; }, "group 0 has members outside"},
      {[](plans& p) { p[2].groups[0].elements = -1; }, "negative number of elements"},
      {[](plans& p) { p[2].groups[0].elements = 5; }, "32 bytes does not hold the group's 5"},
      {[](plans& p) { p[2].groups[0].elements = INT64_MAX; }, "does not hold"},
      {[](plans& p) {
         range_of(p[2], action::all_reduce) = {8, 24};
       },
       "24 bytes does not hold the group's 4"},
      {[](plans& p) {
         range_of(p[2], action::all_reduce) = {4, 28};
       },
       "begins within an element"},
      {[](plans& p) {
         range_of(p[2], action::all_reduce) = {8, 32};
       },
       "is used beyond its end"},
      {[](plans& p) {
         range_of(p[2], action::all_reduce) = {-8, 8};
       },
       "is used beyond its end"},
      {[](plans& p) {
         range_of(p[0], action::send) = {0, 8};
       },
       "moved in part, which only sums are"},
      {[](plans& p) { p[0].ranges.resize(1); }, "are not one for each use"},
  });
}

TEST_CASE("what is moved is a buffer of its own") {
  plans all = good_plans();
  std::vector<plan_view> given = views(all);
  std::vector<op_part> parts(all[0].instructions.size());
  given[0].parts = parts;
  CHECK_NOTHROW(executor::validate(given));
  parts[static_cast<std::size_t>(nth(all[0], action::send))].own_uses = 0;
  expect_part(
      refusal_of([&] { executor::validate(given); }),
      "0SEND_F0 (stage 0, send of activations, micro-batch 0): only what is run has buffers "
      "that are not its own");
}

TEST_CASE("plans that do not belong together") {
  refuses_each({
      {[](plans& p) { p[2].head.digest = 1; }, "rank 2 runs another schedule than rank 0"},
      {[](plans& p) { p[1] = p[0]; }, "rank 0 has two plans"},
      {[](plans& p) { p[1].head.ranks = 4; }, "rank 1 is planned for 4 ranks, rank 0 for 3"},
      {[](plans& p) { p[1].buffers[0].bytes = 32; }, "64 bytes are sent, 32 received"},
      {[](plans& p) { p[1].at(nth(p[1], action::receive)).what.microbatch = 1; },
       "channel 0 -> 1: rank 0, instruction 1, 0SEND_F0"},
      {[](plans& p) { p[1].at(nth(p[1], action::receive)).what.microbatch = 1; },
       "they are not the same message"},
      {[](plans& p) {
         instruction& lost = p[2].at(nth(p[2], action::receive, 1));
         lost.act = action::run;
         lost.peer = -1;
       },
       "channel 1 -> 2: 2 sends, but 1 receives"},
      {[](plans& p) {
         for (int n = 1; n >= 0; --n) p[0].at(nth(p[0], action::send, n)).act = action::run;
       },
       "channel 0 -> 1: 0 sends, but 2 receives"},
      {[](plans& p) {
         p[1].groups.clear(), p[1].at(nth(p[1], action::all_reduce)).act = action::run;
       },
       "group 0: ranks 0 and 1 differ in whether it exists"},
      {[](plans& p) {
         p[2].members = {2, 1, 0};
       },
       "ranks 0 and 2 differ in its members"},
      {[](plans& p) { p[1].groups[0].elements = 3; }, "ranks 0 and 1 differ in what it sums"},
      {[](plans& p) {  // one number for two groups
         p[0].members = {0};
         p[0].groups[0].count = 1;
         p[1].members = p[2].members = {1, 2};
         p[1].groups[0].count = p[2].groups[0].count = 2;
       },
       "group 0: ranks 0 and 1 are in it, and the one is no member of the other's"},
      {[](plans& p) { p[1].groups[0].wide = false; }, "ranks 0 and 1 differ in what it sums"},
      {[](plans& p) { p[2].at(nth(p[2], action::all_reduce)).act = action::run; },
       "ranks 0 and 2 differ in how often it sums"},
  });
}

TEST_CASE("plans that there are none of: by whom they were to be made, and why not") {
  const job_table table(2, 1);
  const planned alone(schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 2}, table.view(),
                      overlap::separate{});
  const shared replicas(alone.plans(), 1, 2);
  sample_stages stages(4);
  expect_part(refusal_of([&] { executor::engine(replicas, stages.pointers); }),
              "there are no plans: unsupported: these plans do not sum gradients over replicas: "
              "with_data_parallel, or plan_request::data_parallel");
  expect_part(refusal_of([&] { executor::engine(replicas.plans(), stages.pointers); }),
              "answer() of what was to make it says why");
  const planned odd(schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 2, .chunks = 2},
                    table.view(), overlap::separate{});
  expect_part(refusal_of([&] { executor::engine(odd, stages.pointers); }),
              "this schedule has one chunk per rank");
  stages.pointers.resize(2);
  CHECK_NOTHROW(executor::engine(alone, stages.pointers));
}

TEST_CASE("lists of the wrong length") {
  const plans all = good_plans();
  std::vector<plan_view> given = views(all);
  sample_stages stages(3);
  expect_part(refusal_of([&] { executor::validate(std::span<const plan_view>{}); }), "no plan");
  stages.pointers.pop_back();
  expect_part(refusal_of([&] { executor::engine(given, stages.pointers); }),
              "3 plans, but 2 stages");
  stages.pointers.push_back(nullptr);
  expect_part(refusal_of([&] { executor::engine(given, stages.pointers); }), "rank 2 has no stage");
  given.pop_back();
  stages.pointers.pop_back();
  expect_part(refusal_of([&] { executor::engine(given, stages.pointers); }),
              "3 ranks, but 2 plans are here");
}

TEST_CASE("descriptions name rank, instruction and job") {
  const plans all = good_plans();
  CHECK(executor::describe(all[1].view(), 1) ==
        "rank 1, instruction 1, 1F0 (stage 1, forward, micro-batch 0)");
  CHECK(executor::describe(job{2, 3, 1, job_kind::backward_weight}) ==
        "2W3.1 (stage 2, backward for the weights, micro-batch 3, slice 1)");
  CHECK(executor::describe(job{0, 4, 0, job_kind::all_reduce}) ==
        "0ALL_REDUCE4 (all-reduce, group 4)");
  CHECK(executor::describe(job{0, 0, 0, job_kind::end_step}) == "0END_STEP (end of the step)");
}

TEST_CASE("meetings are the two ends of a message and the members of a group") {
  plans all = good_plans();
  const std::vector<plan_view> given = views(all);
  const executor::meetings met(given);
  const int send = nth(all[0], action::send, 1);
  const int receive = nth(all[1], action::receive, 1);
  REQUIRE(met.others({0, send}).size() == 1);
  CHECK(met.others({0, send})[0] == executor::place{1, receive});
  CHECK(met.others({1, receive})[0] == executor::place{0, send});
  CHECK(met.others({0, nth(all[0], action::run)}).empty());
  const int sum = nth(all[1], action::all_reduce);
  REQUIRE(met.others({1, sum}).size() == 2);
  CHECK(met.others({1, sum})[0].plan == 0);
  CHECK(met.others({1, sum})[1].plan == 2);
}
