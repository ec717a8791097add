// Plans whose jobs are expanded into ops on streams, and what the rules catch in them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stretto/check/all.hpp"
#include "stretto/check/plan_order.hpp"
#include "stretto/lowering/sequence_writer.hpp"
#include "stretto/lowering/streams/receive_lead.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/lowering/walk.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/expanded.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/plan/with_ops.hpp"
#include "stretto/schedule/dualpipe_v.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "stretto/schedule/paired_1f1b.hpp"
#include "stretto/schedule/zb_h1.hpp"
#include "support/schedules.hpp"
#include "support/two_products.hpp"

namespace {

using stretto::action;
using stretto::plan_view;
using support::op_order;
using support::two_products;

stretto::plan_request request() {
  stretto::plan_request made;
  made.stages = {{.output = 640, .stash = 6400, .gradients = 640}};
  return made;
}

std::string text(const stretto::verdict& answer) {
  return std::string(stretto::to_text(answer).view());
}

TEST_CASE("every schedule's plans hold all rules when their jobs are expanded") {
  int plans = 0;
  int sums = 0;
  int starts = 0;
  for (const stretto::schedule::any& schedule : support::schedules()) {
    for (const stretto::shape sizes :
         {stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 1},
          stretto::shape{.ranks = 4, .microbatches = 8, .chunks = 1},
          stretto::shape{.ranks = 4, .microbatches = 8, .chunks = 2}}) {
      if (!schedule.supports(sizes).ok()) continue;
      CAPTURE(schedule.name);
      CAPTURE(sizes.ranks);
      const stretto::job_table costs(sizes.ranks, stretto::place(schedule.placed(), sizes).chunks);
      const stretto::planned base(schedule, sizes, costs.view(), stretto::overlap::separate{},
                                  request());
      REQUIRE(base.answer().ok());
      const auto expand = [&](const auto& ops) {
        const auto streams = ops.streams();
        const stretto::expanded made(base, streams, ops);
        CHECK(text(made.answer()) == "ok");
        for (const plan_view& plan : made.plans()) {
          ++plans;
          for (const stretto::instruction& at : plan.instructions)
            sums += at.act == action::share_sum;
          for (const stretto::event_wait& wait : plan.waits)
            starts += wait.why == stretto::wait_reason::starts_before;
        }
      };
      expand(two_products<op_order::program, 0, 2>{});
      expand(two_products<op_order::input_gradient_first, 0, 2>{});
      expand(two_products<op_order::look_ahead, 0, 2>{});
      expand(two_products<op_order::pieces, 0, 2>{});
      expand(two_products<op_order::look_ahead, 8, 2>{});
      expand(two_products<op_order::pieces, 8, 2>{});
    }
  }
  MESSAGE(plans, " plans, ", sums, " sums, ", starts, " waits for a start");
  CHECK(plans > 900);
  CHECK(starts > 1000);
}

TEST_CASE("so do those whose receives are not posted as early as possible") {
  int leads = 0;
  for (const stretto::schedule::any& schedule : support::schedules()) {
    for (const stretto::shape sizes : {stretto::shape{.ranks = 3, .microbatches = 6},
                                       stretto::shape{.ranks = 2, .microbatches = 4},
                                       stretto::shape{.ranks = 4, .microbatches = 8, .chunks = 2}})
      for (const int lead : {0, 1, 2, 3}) {
        if (!schedule.supports(sizes).ok()) continue;
        CAPTURE(schedule.name);
        CAPTURE(sizes.ranks);
        CAPTURE(lead);
        const stretto::job_table costs(sizes.ranks,
                                       stretto::place(schedule.placed(), sizes).chunks);
        stretto::overlap::with_receive_lead<> led;
        led.lead = lead;
        const stretto::planned base(schedule, sizes, costs.view(), led, request());
        REQUIRE(base.answer().ok());
        const two_products<op_order::look_ahead, 8, 2> ops;
        const auto streams = ops.streams();
        const stretto::expanded made(base, streams, ops);
        CHECK(text(made.answer()) == "ok");
        for (const plan_view& plan : made.plans()) {
          std::vector<bool> recorded(static_cast<std::size_t>(plan.events));
          for (std::size_t index = 0; index < plan.instructions.size(); ++index)
            for (const std::int32_t event :
                 {plan.instructions[index].record, plan.parts[index].started})
              if (event >= 0) recorded[static_cast<std::size_t>(event)] = true;
          CHECK(std::ranges::count(recorded, false) == 0);
          for (const stretto::event_wait& wait : plan.waits)
            leads += wait.why == stretto::wait_reason::lead;
        }
      }
  }
  CHECK(leads > 100);
}

TEST_CASE("so do those of jobs that run again or whose stashes go to the host") {
  int again = 0;
  int copies = 0;
  for (const stretto::schedule::any& schedule : support::schedules()) {
    for (const stretto::shape sizes : {stretto::shape{.ranks = 2, .microbatches = 8, .chunks = 1},
                                       stretto::shape{.ranks = 2, .microbatches = 8, .chunks = 2}})
      for (const bool host : {false, true}) {
        if (!schedule.supports(sizes).ok()) continue;
        CAPTURE(schedule.name);
        CAPTURE(host);
        stretto::plan_request wanted = request();
        if (host)
          wanted.offload = stretto::memory::offload_all;
        else
          wanted.recompute = stretto::memory::recompute_all;
        const stretto::job_table costs(sizes.ranks,
                                       stretto::place(schedule.placed(), sizes).chunks);
        const stretto::planned base(schedule, sizes, costs.view(), stretto::overlap::separate{},
                                    wanted);
        REQUIRE(base.answer().ok());
        const two_products<op_order::look_ahead, 8, 2> ops;
        const auto streams = ops.streams();
        const stretto::expanded made(base, streams, ops);
        CHECK(text(made.answer()) == "ok");
        for (const plan_view& plan : made.plans())
          for (const stretto::instruction& at : plan.instructions) {
            again += at.what.kind == stretto::job_kind::recompute;
            copies += at.act == action::reload;
          }
      }
  }
  CHECK(again > 200);
  CHECK(copies > 100);
}

//! One rank's arrays, to be changed.
struct loose {
  explicit loose(const plan_view& plan)
      : instructions(plan.instructions.begin(), plan.instructions.end()),
        parts(plan.parts.begin(), plan.parts.end()),
        waits(plan.waits.begin(), plan.waits.end()),
        ranges(plan.ranges.begin(), plan.ranges.end()),
        buffers(plan.buffers.begin(), plan.buffers.end()) {}
  plan_view view(plan_view plan) const {
    plan.instructions = instructions;
    plan.parts = parts;
    plan.waits = waits;
    plan.ranges = ranges;
    plan.buffers = buffers;
    plan.events += new_events;
    return plan;
  }
  void add_wait(std::size_t index, const stretto::event_wait& wait) {
    waits.insert(waits.begin() + instructions[index].first_wait, wait);
    ++instructions[index].wait_count;
    for (std::size_t later = index + 1; later < instructions.size(); ++later)
      ++instructions[later].first_wait;
  }
  std::int32_t new_events = 0;
  std::vector<stretto::instruction> instructions;
  std::vector<stretto::op_part> parts;
  std::vector<stretto::event_wait> waits;
  std::vector<stretto::byte_range> ranges;
  std::vector<stretto::buffer> buffers;
};

//! What the rules say of plans that were made from `base`, one rank's changed.
stretto::verdict judged(const stretto::planned& base, const stretto::expanded& made,
                        const loose& changed, std::size_t rank) {
  std::vector<plan_view> plans(made.plans().begin(), made.plans().end());
  plans[rank] = changed.view(plans[rank]);
  std::size_t stride = 0;
  for (const plan_view& plan : plans) stride = std::max(stride, plan.instructions.size());
  std::vector<stretto::lowering::clock> clocks(plans.size() * stride);
  stretto::check::plan_order order(plans, clocks.data(), static_cast<int>(stride));
  stretto::verdict answer = stretto::lowering::walk(base.issued(), base.order(), order);
  if (answer.ok()) answer = order.found();
  if (answer.ok())
    answer = stretto::check::plans(
        plans, {clocks.data(), static_cast<int>(plans.size()), static_cast<int>(stride)});
  return answer;
}

template <op_order Order = op_order::look_ahead, class Schedule>
void spoil_everything(const Schedule& schedule, const stretto::shape& sizes, int& mutants) {
  int ahead = 0;
  int sums = 0;  // in pieces
  int dropped = 0;
  const two_products<Order, 8, 2> ops;
  const stretto::job_table costs(sizes.ranks, stretto::place(schedule.placed(), sizes).chunks);
  const stretto::planned base(schedule, sizes, costs.view(), stretto::overlap::separate{},
                              request());
  const auto streams = ops.streams();
  const stretto::expanded made(base, streams, ops);
  REQUIRE(text(made.answer()) == "ok");
  for (std::size_t rank = 0; rank < made.plans().size(); ++rank) {
    const plan_view& plan = made.plans()[rank];
    CAPTURE(schedule.name);
    CAPTURE(rank);
    REQUIRE(text(judged(base, made, loose(plan), rank)) == "ok");
    const auto refused = [&](const loose& changed) {
      ++mutants;
      return judged(base, made, changed, rank);
    };
    for (std::size_t index = 0; index < plan.instructions.size(); ++index) {
      CAPTURE(index);
      const stretto::instruction& at = plan.instructions[index];
      // Each wait left out.
      for (int wait = at.first_wait; wait < at.first_wait + at.wait_count; ++wait) {
        loose changed(plan);
        std::swap(changed.waits[static_cast<std::size_t>(wait)],
                  changed.waits[static_cast<std::size_t>(at.first_wait + at.wait_count - 1)]);
        --changed.instructions[index].wait_count;
        const stretto::verdict answer = refused(changed);
        CHECK(!answer.ok());
        if (plan.waits[static_cast<std::size_t>(wait)].why == stretto::wait_reason::starts_before)
          CHECK(answer.what == stretto::fault::not_resident);
        // For the end instead of the start, and the other way round.
        loose other(plan);
        auto& why = other.waits[static_cast<std::size_t>(wait)].why;
        why = why == stretto::wait_reason::starts_before ? stretto::wait_reason::data
                                                         : stretto::wait_reason::starts_before;
        CHECK(!refused(other).ok());
      }
      // Each record of an event, at the end and at the start.
      if (at.record >= 0) {
        loose changed(plan);
        changed.instructions[index].record = -1;
        CHECK(!refused(changed).ok());
      }
      if (plan.parts[index].started >= 0) {
        loose changed(plan);
        changed.parts[index].started = -1;
        CHECK(!refused(changed).ok());
      }
      // A wait ahead for the start of what nobody need wait for.
      if (plan.parts[index].holds > 0 && plan.parts[index].started < 0 && index > 0) {
        loose changed(plan);
        changed.new_events = 1;
        changed.parts[index].started = plan.events;
        changed.add_wait(index - 1, {plan.events, stretto::wait_reason::starts_before, false});
        const stretto::verdict answer = refused(changed);
        CHECK(answer.why == stretto::reason::read_before_write);
        CHECK(answer.step == static_cast<int>(index) - 1);
        ++ahead;
      }
      // Another stream.
      if (plan.parts[index].op >= 0) {
        loose changed(plan);
        changed.instructions[index].stream = at.stream == 0 ? support::tensor_parallel : 0;
        CHECK(!refused(changed).ok());
      }
      // The end of a node too early, and one too few.
      if (plan.parts[index].op >= 0) {
        loose changed(plan);
        changed.parts[index].ends = changed.parts[index].ends == 0 ? 1 : 0;
        CHECK(!refused(changed).ok());
      }
      // An op twice, and not at all, whatever happens to what it touches and who waits for it.
      if (plan.parts[index].op >= 0 && plan.parts[index].pieces == 1) {
        const auto here = static_cast<std::ptrdiff_t>(index);
        const auto listed = [&](const loose& changed) {
          const plan_view spoilt = changed.view(plan);
          return stretto::check::as_listed(std::span(&spoilt, 1), base.issued()).why;
        };
        loose changed(plan);
        changed.instructions.insert(changed.instructions.begin() + here, at);
        changed.parts.insert(changed.parts.begin() + here, plan.parts[index]);
        changed.parts[index].ends = 0;
        CHECK(listed(changed) == stretto::reason::op_twice);
        if (plan.parts[index].ends > 0) continue;
        loose less(plan);
        less.instructions.erase(less.instructions.begin() + here);
        less.parts.erase(less.parts.begin() + here);
        CHECK(listed(less) == stretto::reason::op_missing);
        ++dropped;
      }
    }
    // Pieces that overlap, that leave a gap, that are there twice or not at all.
    for (std::size_t use = 0; use < plan.ranges.size(); ++use) {
      const stretto::byte_range range = plan.ranges[use];
      if (range.bytes == plan.buffers[static_cast<std::size_t>(plan.uses[use].buffer)].bytes)
        continue;
      CAPTURE(use);
      for (const auto& [first, bytes] : {std::pair{4, 0}, {4, -4}, {-4, 4}, {0, -4}, {0, 4}}) {
        loose changed(plan);
        changed.ranges[use] = {range.first + first, range.bytes + bytes};
        CHECK(refused(changed).what == stretto::fault::miscut);
        CHECK(refused(changed).why == stretto::reason::pieces_do_not_fit);
      }
    }
    for (std::size_t index = 0; index < plan.parts.size(); ++index) {
      if (plan.parts[index].pieces == 1) continue;
      CAPTURE(index);
      for (const auto& [piece, pieces] : {std::pair{1, 0}, {-1, 0}, {0, 1}, {0, -1}}) {
        loose changed(plan);
        changed.parts[index].piece = static_cast<std::int16_t>(plan.parts[index].piece + piece);
        changed.parts[index].pieces = static_cast<std::int16_t>(plan.parts[index].pieces + pieces);
        CHECK(refused(changed).why == stretto::reason::piece_missing);
      }
      // A sum each of whose pieces is of all that it sums.
      if (plan.instructions[index].act != action::share_sum || plan.parts[index].piece > 0)
        continue;
      loose changed(plan);
      for (std::size_t other = index; plan.parts[other].ends == 0; ++other) {
        if (plan.parts[other].op != plan.parts[index].op) continue;
        const auto use = static_cast<std::size_t>(plan.instructions[other].first_use);
        changed.ranges[use] = {0,
                               plan.buffers[static_cast<std::size_t>(plan.uses[use].buffer)].bytes};
      }
      CHECK(refused(changed).why == stretto::reason::pieces_do_not_fit);
      ++sums;
    }
    for (std::size_t id = 0; id < plan.buffers.size(); ++id) {
      if (plan.buffers[id].role != stretto::buffer_role::workspace) continue;
      CAPTURE(id);
      // A buffer freed one instruction early, and moved onto another's bytes.
      loose early(plan);
      --early.buffers[id].release;
      CHECK(!refused(early).ok());
      loose moved(plan);
      moved.buffers[id].offset = 0;
      moved.buffers[id].bytes = plan.arena_bytes;
      CHECK(!refused(moved).ok());
    }
  }
  CHECK(ahead > 0);
  CHECK(dropped > 0);
  CHECK((sums > 0) == (Order == op_order::pieces));
}

TEST_CASE("what is spoilt in one place is refused") {
  int mutants = 0;
  spoil_everything(stretto::schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 3}, mutants);
  spoil_everything(stretto::schedule::paired_1f1b{}, {.ranks = 2, .microbatches = 5}, mutants);
  spoil_everything(stretto::schedule::zb_h1{}, {.ranks = 3, .microbatches = 4}, mutants);
  spoil_everything(stretto::schedule::dualpipe_v{}, {.ranks = 2, .microbatches = 4, .chunks = 2},
                   mutants);
  CHECK(mutants > 2000);
  spoil_everything<op_order::pieces>(stretto::schedule::one_f_one_b{},
                                     {.ranks = 2, .microbatches = 3}, mutants);
  spoil_everything<op_order::pieces>(stretto::schedule::paired_1f1b{},
                                     {.ranks = 2, .microbatches = 3}, mutants);
  MESSAGE(mutants, " mutants");
}

TEST_CASE("of two sums issued one behind the other the start of the second is awaited") {
  std::vector<stretto::instruction> list(4);
  std::vector<stretto::op_part> parts(4);
  std::vector<stretto::event_wait> waits{{0, stretto::wait_reason::starts_before, false}};
  for (const std::size_t sum : {1U, 2U}) {
    list[sum].stream = 1;
    list[sum].act = action::share_sum;
    parts[sum].holds = 8;
    parts[sum].started = static_cast<std::int32_t>(sum) - 1;
  }
  list[3].wait_count = 1;
  plan_view plan;
  plan.events = 2;
  plan.instructions = list;
  plan.parts = parts;
  plan.waits = waits;
  const std::vector<stretto::lowering::clock> nothing_known(4);
  const auto judged = [&](std::int32_t event) {
    waits[0].event = event;
    return stretto::check::resident(std::span(&plan, 1), {nothing_known.data(), 1, 4}, 0);
  };
  CHECK(judged(1).ok());
  const stretto::verdict early = judged(0);
  CHECK(early.what == stretto::fault::not_resident);
  CHECK(early.step == 3);
}

TEST_CASE("what computes waits for the start of a sum whose stream goes on with a copy") {
  using stretto::reads;
  using stretto::writes;
  stretto::program_chain chain;
  const auto x = chain.buffer("x", 64);
  const auto y = chain.buffer("y", 64);
  const auto z = chain.buffer("z", 64);
  stretto::op_form beside{.time = 5, .stream = support::tensor_parallel};
  chain.begin(stretto::job_kind::forward, 0);
  chain.add("product", {writes(x), writes(y), writes(z)}, {.time = 4});
  chain.add("copy", {writes(z)}, beside);
  beside.holds = 8, beside.collective = true;
  chain.add("sum", {writes(x)}, beside);
  beside.holds = 0, beside.collective = false;
  chain.add("copy", {writes(y)}, beside);
  chain.add("product", {}, {.time = 4});
  chain.add("both", {reads(x), reads(y), reads(z)}, {.time = 4});
  const std::span first = std::span(chain.programs).first(1);
  const stretto::op_graph graph = stretto::graph_of(chain, first);
  stretto::lowering::op_sequence made;
  REQUIRE(text(stretto::lowering::write_sequence(
              chain, graph, stretto::overlap::program_order(graph), first, made)) == "ok");
  REQUIRE(made.steps[4].waits == 1);
  const auto wait = made.waits[static_cast<std::size_t>(made.steps[4].first_wait)];
  CHECK(wait.start);
  CHECK(wait.step == 2);
}

TEST_CASE("programs that are not tied to their job are refused by op") {
  using stretto::reads;
  using stretto::writes;
  const auto answer = [](const auto& fill) {
    stretto::program_chain chain;
    const auto x = chain.buffer("x", 64);
    const auto y = chain.buffer("y", 64);
    const stretto::op_form sums{.stream = support::tensor_parallel, .collective = true};
    fill(chain, x, y, sums);
    const std::span first = std::span(chain.programs).first(1);
    const stretto::op_graph graph = stretto::graph_of(chain, first);
    stretto::lowering::op_sequence made;
    return stretto::lowering::write_sequence(chain, graph, stretto::overlap::program_order(graph),
                                             first, made);
  };
  const auto forward = stretto::job_kind::forward;
  stretto::verdict found = answer([&](auto& chain, auto x, auto y, auto sums) {
    chain.begin(forward, 0);
    chain.add("gather", {reads(x), writes(y)}, sums);
    chain.add("product", {reads(y)});
  });
  CHECK(found.what == stretto::fault::unsound_program);
  CHECK(found.why == stretto::reason::needs_nothing);
  CHECK(found.step == 0);
  found = answer([&](auto& chain, auto x, auto y, auto sums) {
    chain.begin(forward, 0);
    chain.add("product", {reads(x), writes(y)});
    chain.add("sum", {writes(y)}, sums);
  });
  CHECK(found.why == stretto::reason::needed_by_nothing);
  CHECK(found.step == 1);
  found = answer([&](auto& chain, auto x, auto y, auto sums) {
    chain.begin(forward, 0);
    chain.add("product", {reads(x), writes(y)});
    chain.add("sum", {writes(y)}, sums);
    chain.add("residual", {reads(y)});
    chain.begin(stretto::job_kind::backward, 0);
    chain.add("back", {reads(y)});
  });
  CHECK(found.why == stretto::reason::outlives_its_job);
  CHECK(found.step == 1);
  found = answer([&](auto& chain, auto x, auto y, auto sums) {
    sums.stream = stretto::max_streams;
    chain.begin(forward, 0);
    chain.add("product", {reads(x), writes(y)});
    chain.add("sum", {writes(y)}, sums);
    chain.add("residual", {reads(y)});
  });
  CHECK(found.why == stretto::reason::no_such_stream);
  CHECK(found.step == 1);
}

TEST_CASE("of a pair each half computes something behind its own sums, wherever these run") {
  using stretto::reads;
  using stretto::writes;
  const auto answer = [](std::uint8_t stream, const std::vector<std::int32_t>& order) {
    stretto::program_chain chain;
    const auto x = chain.buffer("x", 64), y = chain.buffer("y", 64);
    const stretto::op_form sums{.stream = stream, .collective = true};
    chain.begin(stretto::job_kind::forward, 0);
    chain.add("make", {writes(x)});
    chain.add("sum", {reads(x), writes(x)}, sums);
    chain.add("use", {writes(y)});
    chain.begin(stretto::job_kind::backward, 0);
    chain.add("back", {});
    chain.add("end", {});
    const std::span<const stretto::program> jobs = chain.programs;
    const stretto::op_graph graph = stretto::side_by_side(
        stretto::graph_of(chain, jobs.first(1)), stretto::graph_of(chain, jobs.subspan(1)));
    stretto::lowering::op_sequence made;
    return stretto::lowering::write_sequence(chain, graph, order, jobs, made);
  };
  CHECK(answer(0, {0, 3, 1, 2, 4}).ok());
  // Its half has `use` ahead of it.
  const stretto::verdict found = answer(0, {0, 3, 2, 1, 4});
  CHECK(found.what == stretto::fault::unsound_program);
  CHECK(found.why == stretto::reason::needed_by_nothing);
  CHECK(found.where.kind == stretto::job_kind::forward);
  CHECK(found.step == 1);
  CHECK(answer(support::tensor_parallel, {0, 3, 1, 2, 4}).why ==
        stretto::reason::needed_by_nothing);
}

TEST_CASE("local buffers that one op touches, or that are there at once, have bytes of their own") {
  using stretto::reads;
  using stretto::writes;
  stretto::program_chain chain;
  std::vector<std::int32_t> parts;
  for (const char* name : {"first", "second", "third"}) parts.push_back(chain.buffer(name, 100));
  const stretto::op_form sums{.stream = support::tensor_parallel, .collective = true};
  chain.begin(stretto::job_kind::forward, 0);
  chain.add("make", {writes(parts[0])});
  chain.add("sum", {writes(parts[0])}, sums);
  chain.add("from first to second", {reads(parts[0]), writes(parts[1])});
  chain.add("sum", {writes(parts[1])}, sums);
  chain.add("between", {reads(parts[1])});
  chain.add("make", {writes(parts[2])});
  chain.add("sum", {writes(parts[2])}, sums);
  chain.add("take", {reads(parts[2])});
  const stretto::op_graph graph = stretto::graph_of(chain, chain.programs);
  stretto::lowering::op_sequence made;
  REQUIRE(stretto::lowering::write_sequence(chain, graph, stretto::overlap::program_order(graph),
                                            chain.programs, made)
              .ok());
  REQUIRE(made.buffers.size() == 3);
  CHECK(made.buffers[0].offset == 0);
  CHECK(made.buffers[1].offset == 128);
  CHECK(made.buffers[2].offset == 0);  // the first is long gone
  CHECK(made.workspace_bytes == 256);
}

// At compile time, too.
using step = stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3},
                               stretto::schedule::one_f_one_b>;
using ops_step = stretto::with_ops<step, two_products<op_order::look_ahead, 8>>;
static_assert(stretto::valid<ops_step>);

TEST_CASE("both times give the same plans") {
  const two_products<op_order::look_ahead, 8> ops;
  const stretto::job_table costs(2, 1);
  stretto::plan_request bytes;
  bytes.stages = {stretto::memory::release_early{}.bytes(0)};
  const stretto::planned base(stretto::schedule::one_f_one_b{}, step::sizes, costs.view(),
                              stretto::overlap::separate{}, bytes);
  const auto streams = ops.streams();
  const stretto::expanded made(base, streams, ops);
  REQUIRE(text(made.answer()) == "ok");
  const stretto::expanded without(base, std::span(streams).first(1), ops);
  CHECK(without.answer().what == stretto::fault::unsupported);
  CHECK(without.answer().why == stretto::reason::no_such_stream);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const plan_view& one = ops_step::plans()[rank];
    const plan_view& other = made.plans()[rank];
    CHECK(std::equal(one.instructions.begin(), one.instructions.end(), other.instructions.begin(),
                     other.instructions.end()));
    CHECK(std::equal(one.parts.begin(), one.parts.end(), other.parts.begin(), other.parts.end()));
    CHECK(std::equal(one.waits.begin(), one.waits.end(), other.waits.begin(), other.waits.end()));
    CHECK(one.digest == other.digest);
    CHECK(one.arena_bytes == other.arena_bytes);
  }
}

}  // namespace
