#include "sm_budget.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>

#include "plan_lookup.hpp"

namespace stretto::executor {
namespace {

//! For each instruction, of each stream the last instruction that is known to have ended when it
//! starts; -1: none. Along a stream none gets less.
class ended_before {
 public:
  explicit ended_before(const plan_view& plan)
      : plan_(plan),
        streams_(plan.streams.size()),
        ended_(plan.instructions.size() * streams_, -1) {
    std::vector<int> last(streams_, -1);
    const std::vector<int> recorders = recorders_of(plan);
    for (std::size_t index = 0; index < plan.instructions.size(); ++index) {
      const instruction& each = plan.instructions[index];
      if (last[each.stream] >= 0) join_end(index, last[each.stream]);
      for (const event_wait& wait : plan.waits_of(each)) {
        if (wait.previous_step) continue;
        const int from = recorders[static_cast<std::size_t>(wait.event)];
        if (plan.instructions[static_cast<std::size_t>(from)].record == wait.event)
          join_end(index, from);
        else
          join_start(index, from);
      }
      last[each.stream] = static_cast<int>(index);
    }
  }
  int of(std::size_t instruction, std::size_t stream) const {
    return ended_[instruction * streams_ + stream];
  }

 private:
  // The start of an instruction says what came before it, its end says that it ended besides.
  void join_start(std::size_t mine, int other) {
    for (std::size_t stream = 0; stream < streams_; ++stream) {
      int& here = ended_[mine * streams_ + stream];
      here = std::max(here, of(static_cast<std::size_t>(other), stream));
    }
  }
  void join_end(std::size_t mine, int other) {
    join_start(mine, other);
    const std::size_t stream = plan_.instructions[static_cast<std::size_t>(other)].stream;
    int& here = ended_[mine * streams_ + stream];
    here = std::max(here, other);
  }

  const plan_view& plan_;
  std::size_t streams_;
  std::vector<int> ended_;
};

//! Of what holds multiprocessors on one stream that which may be under way beside the latest
//! instruction of another: as that goes on some begins to, and what does ends to, in their order.
struct holders_beside {
  std::size_t next = 0;      //!< the first that has to wait for that instruction
  std::deque<int> largest;  //!< of those beside it each that holds more than all behind it
};

}  // namespace

std::vector<int> sm_budgets(const plan_view& plan, int multiprocessors) {
  std::vector<int> budgets(plan.instructions.size(), 0);
  const std::size_t streams = plan.streams.size();
  std::vector<std::vector<int>> holders(streams);
  const auto held_by = [&](int index) { return static_cast<int>(plan.part_of(index).holds); };
  for (int index = 0; index < static_cast<int>(plan.parts.size()); ++index)
    if (held_by(index) > 0)
      holders[plan.instructions[static_cast<std::size_t>(index)].stream].push_back(index);
  const bool none = std::ranges::all_of(holders, [](const auto& of) { return of.empty(); });
  if (multiprocessors <= 0 || none) return budgets;
  const ended_before ended(plan);
  std::vector<holders_beside> beside(streams * streams);
  for (std::size_t index = 0; index < budgets.size(); ++index) {
    const instruction& each = plan.instructions[index];
    if (each.act != action::run) continue;
    int sum = 0;
    for (std::size_t stream = 0; stream < streams; ++stream) {
      if (stream == each.stream) continue;
      holders_beside& here = beside[each.stream * streams + stream];
      std::deque<int>& largest = here.largest;
      for (; here.next < holders[stream].size(); ++here.next) {
        const int holder = holders[stream][here.next];
        if (ended.of(static_cast<std::size_t>(holder), each.stream) >= static_cast<int>(index))
          break;
        while (!largest.empty() && held_by(largest.back()) <= held_by(holder)) largest.pop_back();
        largest.push_back(holder);
      }
      while (!largest.empty() && largest.front() <= ended.of(index, stream)) largest.pop_front();
      if (!largest.empty()) sum += held_by(largest.front());
    }
    if (sum > 0) budgets[index] = std::max(1, multiprocessors - sum);
  }
  return budgets;
}

}  // namespace stretto::executor
