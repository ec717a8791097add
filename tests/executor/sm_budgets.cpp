// Which multiprocessors communication leaves to an op, against an oracle that looks at every pair.
#include "../../executor/src/sm_budget.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

#include "plan_builder.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

//! A plan with waits for ends and for starts, and ops that hold multiprocessors.
struct random_plan {
  random_plan(std::mt19937& random, int instructions, int streams)
      : plan(0, 1, {"a", "b", "c", "d"}), parts(static_cast<std::size_t>(instructions)) {
    const auto below = [&](int end) {
      return static_cast<int>(random() % static_cast<unsigned>(end));
    };
    plan.streams.resize(static_cast<std::size_t>(streams));
    for (int index = 0; index < instructions; ++index) {
      std::vector<int> after;
      if (index > 0 && below(3) == 0) after.push_back(below(index));
      plan.run({0, index, 0, job_kind::forward}, below(streams), {}, after);
      op_part& part = parts[static_cast<std::size_t>(index)];
      part.op = 0;
      if (below(3) == 0) part.holds = static_cast<std::int16_t>(1 + below(20));
    }
    // Some wait for a start: of one that has an event for it.
    for (int index = 1; index < instructions; ++index)
      if (instruction& each = plan.at(index); each.wait_count == 0 && below(4) == 0) {
        op_part& begun = parts[static_cast<std::size_t>(below(index))];
        if (begun.started < 0) begun.started = plan.head.events++;
        each.first_wait = static_cast<std::int32_t>(plan.waits.size());
        each.wait_count = 1;
        plan.waits.push_back({begun.started, wait_reason::starts_before, false});
      }
  }
  plan_view view() {
    plan_view made = plan.view();
    made.parts = parts;
    return made;
  }

  plan_builder plan;
  std::vector<op_part> parts;
};

//! By what each start and each end follows, one after the other: 2 i is the start of i, 2 i + 1 its
//! end.
std::vector<int> looked_at(const plan_view& plan, int multiprocessors) {
  const std::size_t count = plan.instructions.size();
  std::vector<std::vector<bool>> follows(2 * count, std::vector<bool>(2 * count, false));
  const auto behind = [&](std::size_t later, std::size_t former) {
    follows[later][former] = true;
    for (std::size_t at = 0; at < 2 * count; ++at)
      if (follows[former][at]) follows[later][at] = true;
  };
  for (std::size_t index = 0; index < count; ++index) {
    const instruction& each = plan.instructions[index];
    for (std::size_t before = 0; before < index; ++before) {
      if (plan.instructions[before].stream == each.stream) behind(2 * index, 2 * before + 1);
      for (const event_wait& wait : plan.waits_of(each)) {
        if (plan.instructions[before].record == wait.event) behind(2 * index, 2 * before + 1);
        if (plan.parts[before].started == wait.event) behind(2 * index, 2 * before);
      }
    }
    behind(2 * index + 1, 2 * index);
  }
  std::vector<int> budgets(count, 0);
  for (std::size_t index = 0; index < count; ++index) {
    std::vector<int> held(plan.streams.size(), 0);
    for (std::size_t other = 0; other < count; ++other) {
      const std::size_t stream = plan.instructions[other].stream;
      if (stream == plan.instructions[index].stream || follows[2 * index][2 * other + 1] ||
          follows[2 * other][2 * index + 1])
        continue;
      held[stream] = std::max(held[stream], static_cast<int>(plan.parts[other].holds));
    }
    int sum = 0;
    for (const int one : held) sum += one;
    if (sum > 0) budgets[index] = std::max(1, multiprocessors - sum);
  }
  return budgets;
}

}  // namespace

TEST_CASE("an op has what is left by the most that each other stream may hold beside it") {
  std::mt19937 random(11);
  int shared = 0, one = 0;
  for (int round = 0; round < 2000; ++round) {
    const int streams = 1 + static_cast<int>(random() % 4);
    random_plan made(random, 1 + static_cast<int>(random() % 24), streams);
    const int multiprocessors = random() % 3 == 0 ? 10 : 132;
    const std::vector<int> budgets = executor::sm_budgets(made.view(), multiprocessors);
    REQUIRE(budgets == looked_at(made.view(), multiprocessors));
    shared += static_cast<int>(std::ranges::count_if(budgets, [](int of) { return of > 1; }));
    one += static_cast<int>(std::ranges::count(budgets, 1));
  }
  CHECK(shared > 1000);
  CHECK(one > 100);
}

TEST_CASE("of long plans, too: what is beside an op is not looked for among all") {
  std::mt19937 random(12);
  random_plan made(random, 400'000, 4);
  const std::vector<int> budgets = executor::sm_budgets(made.view(), 132);
  CHECK(std::ranges::count_if(budgets, [](int of) { return of > 0; }) > 100'000);
  CHECK(executor::sm_budgets(made.view(), 0) == std::vector<int>(400'000, 0));
}
