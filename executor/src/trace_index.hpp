#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "stretto/executor/error.hpp"
#include "stretto/executor/meetings.hpp"
#include "stretto/executor/trace.hpp"

namespace stretto::executor {

//! Records found by step and place.
class trace_index {
 public:
  //! @throws plan_error when a record names what is not in the plans.
  trace_index(std::span<const plan_view> plans, std::span<const trace_record> records) {
    std::map<int, int> plan_of;
    for (std::size_t at = 0; at < plans.size(); ++at)
      plan_of[plans[at].rank] = static_cast<int>(at);
    for (const trace_record& each : records) {
      const auto found = plan_of.find(each.rank);
      if (found == plan_of.end())
        throw plan_error("a trace record names rank " + std::to_string(each.rank) +
                         ", of which there is no plan");
      const plan_view& plan = plans[static_cast<std::size_t>(found->second)];
      if (each.instruction < 0 ||
          static_cast<std::size_t>(each.instruction) >= plan.instructions.size())
        throw plan_error("a trace record names instruction " + std::to_string(each.instruction) +
                         " of rank " + std::to_string(each.rank) + ", which has " +
                         std::to_string(plan.instructions.size()));
      std::vector<std::vector<const trace_record*>>& step = steps_[each.step];
      if (step.empty())
        for (const plan_view& every : plans) step.emplace_back(every.instructions.size());
      step[static_cast<std::size_t>(found->second)][static_cast<std::size_t>(each.instruction)] =
          &each;
    }
  }

  bool has_step(std::int64_t step) const { return steps_.count(step) != 0; }
  //! Null when there is none.
  const trace_record* find(std::int64_t step, place at) const {
    const auto found = steps_.find(step);
    if (found == steps_.end()) return nullptr;
    return found
        ->second[static_cast<std::size_t>(at.plan)][static_cast<std::size_t>(at.instruction)];
  }
  //! The steps, in ascending order, as keys.
  const auto& steps() const { return steps_; }

 private:
  std::map<std::int64_t, std::vector<std::vector<const trace_record*>>> steps_;
};

}  // namespace stretto::executor
