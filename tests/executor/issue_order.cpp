// In which order one thread issues for several ranks.
#include "../../executor/src/issue_order.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "executor/plan_builder.hpp"
#include "stretto/executor/meetings.hpp"

using namespace stretto;
using namespace stretto::test;

TEST_CASE("ranks that meet late take turns by one instruction each, and meet together") {
  constexpr int ranks = 3;
  std::vector<plan_builder> plans;
  for (int rank = 0; rank < ranks; ++rank) {
    plan_builder plan(rank, ranks, {"compute", "sums"});
    plan.add_group({0, 1, 2}, 4, false);
    const int sums = plan.add_buffer(buffer_role::collective, 0, 0, 16);
    // Some have more to do before they meet, and some behind.
    for (int at = 0; at < 4 + 2 * rank; ++at) plan.run({0, at, 0, job_kind::forward}, 0, {});
    const int ready = plan.run({0, 0, 0, job_kind::reduce_grad}, 0,
                               {{sums, buffer_role::collective, access::write}});
    plan.all_reduce(0, 1, sums, {ready});
    for (int at = 0; at < 6 - 2 * rank; ++at) plan.run({0, at, 0, job_kind::backward}, 0, {});
    plans.push_back(plan.end());
  }
  const std::vector<plan_view> given = views(plans);
  const auto order = executor::order_of_issue(given, executor::meetings(given));
  std::vector<int> next(ranks);
  std::vector<int> met(ranks, -1);
  for (std::size_t turn = 0; turn < order.size(); ++turn) {
    const auto plan = static_cast<std::size_t>(order[turn].plan);
    const instruction& at =
        plans[plan].instructions[static_cast<std::size_t>(order[turn].instruction)];
    if (at.act == action::all_reduce && order[turn].begins) met[plan] = static_cast<int>(turn);
    if (!order[turn].ends) continue;
    CHECK(order[turn].instruction == next[plan]);
    ++next[plan];
    // Nobody is ahead by more than one of who still goes on to the sum, or has come from it.
    const auto sum_of = [&](std::size_t rank) { return 5 + 2 * static_cast<int>(rank); };
    for (std::size_t other = 0; other < ranks; ++other)
      if (next[other] < sum_of(other) && next[plan] <= sum_of(plan))
        CHECK(next[plan] <= next[other] + 1);
  }
  for (std::size_t rank = 0; rank < ranks; ++rank)
    CHECK(next[rank] == static_cast<int>(plans[rank].instructions.size()));
  const auto [first, last] = std::ranges::minmax_element(met);
  CHECK(*last - *first == ranks - 1);
}
