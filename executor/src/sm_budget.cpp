#include "sm_budget.hpp"

#include <algorithm>
#include <cstddef>

#include "plan_lookup.hpp"

namespace stretto::executor {
namespace {

//! For each stream the last instruction on it that is known to have ended; -1: none.
using clock = std::vector<int>;

//! What is known to have ended when each instruction starts.
std::vector<clock> clocks_of(const plan_view& plan) {
  const std::size_t count = plan.instructions.size();
  const std::size_t streams = plan.streams.size();
  std::vector<clock> at_start(count, clock(streams, -1));
  std::vector<int> last(streams, -1);
  const std::vector<int> recorders = recorders_of(plan);
  const auto join = [](clock& mine, const clock& other) {
    for (std::size_t stream = 0; stream < mine.size(); ++stream)
      mine[stream] = std::max(mine[stream], other[stream]);
  };
  // The start of an instruction says what came before it, its end says that it ended besides.
  const auto join_end = [&](clock& mine, int instruction) {
    const auto number = static_cast<std::size_t>(instruction);
    join(mine, at_start[number]);
    int& on_stream = mine[plan.instructions[number].stream];
    on_stream = std::max(on_stream, instruction);
  };
  for (std::size_t index = 0; index < count; ++index) {
    const instruction& each = plan.instructions[index];
    clock& mine = at_start[index];
    if (last[each.stream] >= 0) join_end(mine, last[each.stream]);
    for (const event_wait& wait : plan.waits_of(each)) {
      if (wait.previous_step) continue;
      const int from = recorders[static_cast<std::size_t>(wait.event)];
      if (plan.instructions[static_cast<std::size_t>(from)].record == wait.event)
        join_end(mine, from);
      else
        join(mine, at_start[static_cast<std::size_t>(from)]);
    }
    last[each.stream] = static_cast<int>(index);
  }
  return at_start;
}

}  // namespace

std::vector<int> sm_budgets(const plan_view& plan, int multiprocessors) {
  std::vector<int> budgets(plan.instructions.size(), 0);
  std::vector<int> holders;
  for (int index = 0; index < static_cast<int>(plan.parts.size()); ++index)
    if (plan.part_of(index).holds > 0) holders.push_back(index);
  if (multiprocessors <= 0 || holders.empty()) return budgets;
  const std::vector<clock> at_start = clocks_of(plan);
  std::vector<int> held(plan.streams.size());
  for (std::size_t index = 0; index < budgets.size(); ++index) {
    const instruction& each = plan.instructions[index];
    if (each.act != action::run) continue;
    std::fill(held.begin(), held.end(), 0);
    for (const int holder : holders) {
      const auto number = static_cast<std::size_t>(holder);
      const std::size_t stream = plan.instructions[number].stream;
      const bool before = at_start[index][stream] >= holder;
      const bool after = at_start[number][each.stream] >= static_cast<int>(index);
      if (stream == each.stream || before || after) continue;
      held[stream] = std::max(held[stream], static_cast<int>(plan.part_of(holder).holds));
    }
    int sum = 0;
    for (const int of_stream : held) sum += of_stream;
    if (sum > 0) budgets[index] = std::max(1, multiprocessors - sum);
  }
  return budgets;
}

}  // namespace stretto::executor
