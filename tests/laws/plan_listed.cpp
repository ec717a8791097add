// Rule complete on plans: whatever one instruction is instead of what its rank's list says is
// refused, there.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "laws/grid/plan_grid.hpp"
#include "stretto/check/all.hpp"
#include "stretto/lowering/streams/receive_lead.hpp"
#include "stretto/plan/expanded.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/schedules.hpp"
#include "support/two_products.hpp"

namespace {

using stretto::action;
using stretto::instruction;
using stretto::job_kind;
using stretto::op_part;
using stretto::plan_view;
using stretto::reason;

const std::vector<std::function<void(instruction&)>> changes{
    [](instruction& at) { ++at.what.stage; },
    [](instruction& at) { --at.what.stage; },
    [](instruction& at) { at.what.microbatch ^= 1; },
    [](instruction& at) { ++at.what.slice; },
    [](instruction& at) { at.what.paired = !at.what.paired; },
    [](instruction& at) {
      at.what.kind = at.what.kind == job_kind::backward_weight ? job_kind::backward_input
                                                               : job_kind::backward_weight;
    },
    [](instruction& at) {
      at.what.kind = at.what.kind == job_kind::send_forward ? job_kind::send_backward
                                                            : job_kind::send_forward;
    },
    [](instruction& at) { at.act = at.act == action::send ? action::run : action::send; },
    [](instruction& at) { at.act = at.act == action::receive ? action::send : action::receive; },
};

//! Spoils every instruction in every way, one at a time. @return how many plans that were
long spoil(std::span<const plan_view> plans, const stretto::replay_input& lists) {
  long mutants = 0;
  REQUIRE(stretto::check::as_listed(plans, lists).ok());
  for (plan_view plan : plans) {
    std::vector<instruction> list(plan.instructions.begin(), plan.instructions.end());
    std::vector<op_part> parts(plan.parts.begin(), plan.parts.end());
    plan.instructions = list;
    plan.parts = parts;
    const auto refused_at = [&](std::size_t index) {
      const stretto::verdict found = stretto::check::as_listed(plan, lists);
      REQUIRE(found.what == stretto::fault::incomplete);
      REQUIRE(found.rank == plan.rank);
      REQUIRE(found.step == static_cast<int>(index));
      ++mutants;
      return found.why;
    };
    for (std::size_t index = 0; index < list.size(); ++index) {
      CAPTURE(plan.rank);
      CAPTURE(index);
      const instruction before = list[index];
      for (const auto& change : changes) {
        change(list[index]);
        REQUIRE(refused_at(index) == reason::not_as_listed);
        list[index] = before;
      }
      if (meets_others(before.act)) {
        for (const int other : {-1, 1}) {
          list[index].peer += other;
          REQUIRE(refused_at(index) == reason::not_as_listed);
          list[index] = before;
        }
      }
      // Not of ops, whose order within their node is the policy's.
      if (index + 1 < list.size() && list[index].what.kind != list[index + 1].what.kind &&
          parts.empty()) {
        std::swap(list[index], list[index + 1]);
        REQUIRE(refused_at(index) == reason::not_as_listed);
        std::swap(list[index], list[index + 1]);
      }
      plan.instructions = std::span(list).first(index);
      REQUIRE(refused_at(index) == reason::missing);
      plan.instructions = list;
    }
    list.push_back(list.back());
    if (!parts.empty()) parts.push_back(parts.back());
    plan.instructions = list;
    plan.parts = parts;
    REQUIRE(refused_at(list.size() - 1) == reason::not_as_listed);
  }
  return mutants;
}

}  // namespace

TEST_CASE("plans of jobs") {
  long mutants = 0;
  laws::for_each_plan(3, 4, 3, 7, [&](const laws::grid_point& point, const auto& made) {
    INFO(point.words());
    REQUIRE(made.answer().ok());
    mutants += spoil(made.plans(), made.issued());
  });
  CHECK(mutants > 100000);
}

TEST_CASE("plans of ops") {
  long mutants = 0;
  const support::two_products<support::op_order::look_ahead, 8, 2> ops;
  for (const stretto::schedule::any& schedule : support::schedules()) {
    for (const int chunks : {1, 2}) {
      const stretto::shape sizes{.ranks = 2, .microbatches = 4, .chunks = chunks};
      if (!schedule.supports(sizes).ok()) continue;
      CAPTURE(schedule.name);
      const stretto::job_table costs(2, stretto::place(schedule.placed(), sizes).chunks);
      const stretto::planned base(schedule, sizes, costs.view(), stretto::overlap::separate{}, {});
      const auto streams = ops.streams();
      const stretto::expanded made(base, streams, ops);
      REQUIRE(made.answer().ok());
      mutants += spoil(made.plans(), base.issued());
    }
  }
  CHECK(mutants > 10000);
}

TEST_CASE("an op that ends its node too early, or never") {
  const support::two_products<support::op_order::program> ops;
  const stretto::job_table costs(2, 1);
  const stretto::planned base(stretto::schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 2},
                              costs.view(), stretto::overlap::separate{}, {});
  const auto streams = ops.streams();
  const stretto::expanded made(base, streams, ops);
  REQUIRE(made.answer().ok());
  plan_view plan = made.plans()[0];
  std::vector<op_part> parts(plan.parts.begin(), plan.parts.end());
  plan.parts = parts;
  for (op_part& part : parts) {
    if (part.op < 0) continue;
    const op_part before = part;
    for (const int ends : {0, 1, 2}) {
      part.ends = static_cast<std::uint8_t>(ends);
      CHECK(stretto::check::as_listed(plan, base.issued()).ok() == (ends == before.ends));
    }
    part = before;
  }
}
