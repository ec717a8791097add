// Plans whose stashes wait on the host: the bits that were saved come back, beside the jobs, and
// the stage hears of no copy.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "forwarding_device.hpp"
#include "plan_builder.hpp"
#include "stretto/executor/engine.hpp"
#include "stretto/executor/error.hpp"
#include "stretto/executor/trace.hpp"
#include "stretto/lowering/streams/all.hpp"
#include "stretto/plan/arena_report.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "stretto/schedule/zb_h2.hpp"
#include "stretto/schedule/zbv.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

std::uint64_t saved_value(std::int64_t step, const job& what, std::size_t element) {
  return static_cast<std::uint64_t>(step) * 1000003U +
         static_cast<std::uint64_t>(what.stage) * 10007U +
         static_cast<std::uint64_t>(what.microbatch) * 101U + element;
}

//! Saves what tells step, stage and micro-batch; the halves of a backward look for it, and the
//! first leaves a note to the second.
struct keeper final : executor::stage {
  void run(const executor::context& at) override {
    const auto stash = at.view<std::uint64_t>(buffer_role::stash);
    if (is_copy(at.what.kind)) ++copies;
    const bool weights = at.what.kind == job_kind::backward_weight;
    for (std::size_t k = 0; k < stash.size(); ++k) {
      const std::uint64_t value = saved_value(at.step, at.what, k);
      if (at.what.kind == job_kind::forward)
        stash[k] = value;
      else if (stash[k] != value + (weights ? 1 : 0))
        ++lost;
      else if (at.what.kind == job_kind::backward_input)
        ++stash[k];
      if (at.what.kind != job_kind::forward) ++looked;
    }
  }
  bool serves(job_kind kind) const override { return !is_copy(kind); }
  std::atomic<long> lost{0};
  std::atomic<long> looked{0};
  std::atomic<int> copies{0};
};

plan_request saving(std::int64_t stash, const memory::offload_window& window) {
  plan_request request;
  request.stages = {{.output = 100, .stash = stash}};
  request.offload = window;
  return request;
}

template <class Schedule, class Overlap>
void run(const Schedule& schedule, const shape& sizes, const Overlap& overlap,
         const memory::offload_window& window) {
  CAPTURE(std::string(Schedule::name));
  CAPTURE(std::string(Overlap::name));
  const job_table costs(sizes.ranks, sizes.chunks);
  const planned made(schedule, sizes, costs.view(), overlap, saving(1000, window));
  REQUIRE(made.answer() == verdict{});
  for (const bool poison : {false, true}) {
    std::vector<keeper> stages(static_cast<std::size_t>(sizes.ranks));
    std::vector<executor::stage*> pointers;
    for (keeper& each : stages) pointers.push_back(&each);
    executor::options with;
    with.poison = poison;
    with.trace_steps = 1;
    with.delay = {3, std::chrono::microseconds(30)};
    executor::engine engine(made.plans(), pointers, std::move(with));
    std::int64_t on_host = 0;
    for (std::size_t rank = 0; rank < stages.size(); ++rank) {
      CHECK(static_cast<std::int64_t>(engine.host_memory(rank).size()) ==
            made.plans()[rank].host_bytes);
      CHECK(static_cast<std::int64_t>(engine.arena(rank).size()) == made.plans()[rank].arena_bytes);
      on_host += made.plans()[rank].host_bytes;
    }
    CHECK(on_host > 0);
    for (int step = 0; step < 4; ++step) engine.step();
    for (const keeper& each : stages) {
      CHECK(each.lost == 0);
      CHECK(each.looked > 0);
      CHECK(each.copies == 0);
    }
    const auto records = engine.trace();
    CHECK_FALSE(executor::check_against(made.plans(), records, true).has_value());
    std::ostringstream text;
    executor::write_chrome_trace(text, made.plans(), records);
    CHECK(text.str().find("0OFFLOAD1\",\"cat\":\"offload\"") != std::string::npos);
    CHECK(text.str().find("0RELOAD1\",\"cat\":\"reload\"") != std::string::npos);
  }
}

}  // namespace

TEST_CASE("what was saved comes back to the bit, on one stream or beside the jobs") {
  for (const auto& window : {memory::offload_all, memory::offload_window{{1, 1}, 0, 0},
                             memory::offload_window{{3, 2}, 2, 1}})
    overlap::for_each([&](const auto& overlap) {
      run(schedule::one_f_one_b{}, {.ranks = 4, .microbatches = 9}, overlap, window);
      run(schedule::interleaved{}, {.ranks = 3, .microbatches = 6, .chunks = 2}, overlap, window);
      run(schedule::zb_h2{}, {.ranks = 3, .microbatches = 8}, overlap, window);
      run(schedule::zbv{}, {.ranks = 3, .microbatches = 7, .chunks = 2}, overlap, window);
    });
}

namespace {

//! A host device that counts its copies once they are done.
class counting final : public forwarding_device {
 public:
  counting(const plan_view& plan, executor::monitor& watch, std::atomic<int>& away,
           std::atomic<int>& back)
      : forwarding_device(plan, watch, {.queue_depth = 64}), away_(away), back_(back) {}

  void copy_to_host(int stream, const executor::copy& work) override {
    executor::device::copy_to_host(stream, work);
    count(stream, away_);
  }
  void copy_from_host(int stream, const executor::copy& work) override {
    executor::device::copy_from_host(stream, work);
    count(stream, back_);
  }

 private:
  void count(int stream, std::atomic<int>& copies) {
    executor::command work;
    work.call = [](const executor::command& given) {
      ++*static_cast<std::atomic<int>*>(given.self);
    };
    work.self = &copies;
    enqueue(stream, work);
  }

  std::atomic<int>& away_;
  std::atomic<int>& back_;
};

}  // namespace

TEST_CASE("a copy to the host runs beside the next job, and a copy back beside the one before") {
  // F0 F1 OFFLOAD0 F2 OFFLOAD1 RELOAD0 F3 ... RELOAD1 B0 ...
  const shape sizes{.ranks = 1, .microbatches = 4};
  const job_table costs(1, 1);
  std::vector<job> list;
  for (int i = 0; i < 4; ++i) list.push_back({0, i, 0, job_kind::forward});
  for (int i = 0; i < 4; ++i) list.push_back({0, i, 0, job_kind::backward});
  list.insert(list.begin() + 7, job{0, 3, 0, job_kind::reload});  // before B2
  list.insert(list.begin() + 5, job{0, 3, 0, job_kind::offload});
  list.insert(list.begin() + 3, job{0, 0, 0, job_kind::reload});  // before F3
  list.insert(list.begin() + 2, job{0, 0, 0, job_kind::offload});
  const std::int32_t count = static_cast<std::int32_t>(list.size());
  const planned made({.rows = {list.data(), &count, 1, count},
                      .where = stretto::place(placement_kind::looped, sizes),
                      .microbatches = 4,
                      .slices = 1,
                      .costs = costs.view()},
                     overlap::separate{}, saving(640, {}));
  REQUIRE(made.answer() == verdict{});
  static std::atomic<int> away;
  static std::atomic<int> back;
  away = back = 0;
  struct waiting final : executor::stage {
    void run(const executor::context& at) override {
      const auto until = [&](std::atomic<int>& copies, int least) {
        while (copies < least && !at.stopped()) std::this_thread::yield();
      };
      const int before = 2 * static_cast<int>(at.step);
      if (at.what == job{0, 1, 0, job_kind::forward}) until(away, before + 1);
      if (at.what == job{0, 3, 0, job_kind::forward}) until(back, before + 1);
      if (at.what == job{0, 2, 0, job_kind::backward}) until(back, before + 2);
    }
  } stage;
  executor::stage* const stages[] = {&stage};
  executor::options with;
  with.make_device = [](const plan_view& plan, executor::monitor& watch) {
    return std::make_unique<counting>(plan, watch, away, back);
  };
  executor::engine engine(made.plans(), stages, std::move(with));
  for (int step = 0; step < 3; ++step) engine.step();
  CHECK(away == 6);
  CHECK(back == 6);
}

namespace {

//! F, OFFLOAD, RELOAD into another stash, B.
plan_builder copied() {
  plan_builder plan(0, 1, {"compute", "offload"});
  const int first = plan.add_buffer(buffer_role::stash, 0, 0, 128);
  const int second = plan.add_buffer(buffer_role::stash, 0, 0, 128);
  const auto bytes = plan.head.arena_bytes;
  const int host = plan.add_buffer(buffer_role::host, 0, 0, 128);
  plan.head.arena_bytes = bytes;
  plan.head.host_bytes = 128;
  const int made = plan.run({0, 0, 0, job_kind::forward}, 0,
                            {{first, buffer_role::stash, stretto::access::write}});
  plan.add(action::offload, {0, 0, 0, job_kind::offload}, 1,
           {{first, buffer_role::stash, stretto::access::read},
            {host, buffer_role::host, stretto::access::write}},
           {made});
  const int there = plan.add(action::reload, {0, 0, 0, job_kind::reload}, 1,
                             {{host, buffer_role::host, stretto::access::read},
                              {second, buffer_role::stash, stretto::access::write}});
  plan.run({0, 0, 0, job_kind::backward}, 0,
           {{second, buffer_role::stash, stretto::access::read_write}}, {there});
  plan.end();
  return plan;
}

}  // namespace

TEST_CASE("copies that make no sense are refused, by name") {
  struct spoilt {
    void (*change)(plan_builder&);
    std::string_view says;
  };
  const spoilt all[] = {
      {[](plan_builder& p) { p.head.host_bytes = -1; }, "host's memory is negative"},
      {[](plan_builder& p) { p.head.host_bytes = 64; },
       "buffer 2 lies outside the host's memory of 64 bytes"},
      {[](plan_builder& p) { p.buffers[2].offset = 128; },
       "buffer 2 lies outside the host's memory"},
      {[](plan_builder& p) { p.buffers[1].offset = p.head.arena_bytes; },
       "buffer 1 lies outside the arena"},
      {[](plan_builder& p) { p.at(1).what.kind = job_kind::forward; }, "its job is no offload"},
      {[](plan_builder& p) { p.at(2).what.kind = job_kind::offload; }, "its job is no reload"},
      {[](plan_builder& p) { p.at(1).use_count = 1; }, "a copy has exactly two buffers"},
      {[](plan_builder& p) { p.uses[1].mode = stretto::access::write; },
       "reads its first buffer and writes its second"},
      {[](plan_builder& p) { std::swap(p.uses[1].buffer, p.uses[2].buffer); },
       "from the arena, and these buffers are not there"},
      {[](plan_builder& p) { p.uses[4].buffer = 2; },
       "to the arena, and these buffers are not there"},
      {[](plan_builder& p) { p.buffers[1].bytes = 64; }, "it copies 128 bytes into 64"},
      {[](plan_builder& p) { p.uses[5].buffer = 2; }, "buffer 2 is on the host"},
  };
  keeper stage;
  executor::stage* const stages[] = {&stage};
  const auto run = [&](const plan_builder& plan) {
    const std::vector<plan_view> plans{plan.view()};
    executor::engine engine(plans, stages);
    for (int step = 0; step < 3; ++step) engine.step();
  };
  run(copied());
  CHECK(stage.looked == 3 * 16);
  CHECK(stage.lost == 0);
  for (const spoilt& each : all) {
    plan_builder plan = copied();
    each.change(plan);
    CAPTURE(std::string(each.says));
    try {
      run(plan);
      FAIL("it was accepted");
    } catch (const executor::plan_error& refused) {
      CAPTURE(std::string(refused.what()));
      CHECK(std::string_view(refused.what()).find(each.says) != std::string_view::npos);
    }
  }
}
