#pragma once

#include <cstddef>
#include <string_view>

#include "stretto/model/plan_view.hpp"

// Answers that are searched for, because nobody needs them while all goes well.
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
