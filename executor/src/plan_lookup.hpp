#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "stretto/model/plan_view.hpp"

// Answers that are searched for every time, because nobody needs them while all goes well; but for
// recorders_of(), which is asked once.
namespace stretto::executor {

inline const instruction& instruction_of(const plan_view& plan, int index) {
  return plan.instructions[static_cast<std::size_t>(index)];
}

//! The instruction at whose end, or start, the event is recorded.
inline int recorder_of(const plan_view& plan, int event) {
  int index = 0;
  while (instruction_of(plan, index).record != event && plan.part_of(index).started != event)
    ++index;
  return index;
}

//! The same of every event; -1: nobody records it.
inline std::vector<int> recorders_of(const plan_view& plan) {
  std::vector<int> recorders(static_cast<std::size_t>(plan.events), -1);
  for (int index = 0; index < static_cast<int>(plan.instructions.size()); ++index)
    for (const std::int32_t event :
         {instruction_of(plan, index).record, plan.part_of(index).started})
      if (event >= 0) recorders[static_cast<std::size_t>(event)] = index;
  return recorders;
}

//! What it is that others have their part in: number_of counts them.
inline std::string_view kind_of_meeting(action act) {
  return is_sum(act) ? "sum" : act == action::all_gather ? "gather" : "message";
}

//! How many of its kind, with the same partner or group, the rank issues before it in the step: a
//! message has the same number on both sides.
inline int number_of(const plan_view& plan, int index) {
  const instruction& mine = instruction_of(plan, index);
  int number = 0;
  for (int before = 0; before < index; ++before) {
    const instruction& each = instruction_of(plan, before);
    if (each.act == mine.act && each.peer == mine.peer) ++number;
  }
  return number;
}

}  // namespace stretto::executor
