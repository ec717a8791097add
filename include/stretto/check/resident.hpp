#pragma once

#include <cstdint>
#include <span>

#include "stretto/lowering/happens_before.hpp"
#include "stretto/model/plan_view.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::check {

//! Rule resident, for one rank: what computes begins after all communication that holds
//! multiprocessors and was issued before it has begun. Otherwise a kernel that takes all of them
//! could come first, and the communication that was to run beside it would wait for its end.
//! @param known clocks of the plans, as `plan_order` found them
constexpr verdict resident(std::span<const plan_view> plans, lowering::clock_rows known, int rank) {
  const plan_view& plan = plans[static_cast<std::size_t>(rank)];
  if (plan.parts.empty()) return {};
  std::int32_t last_on[lowering::max_streams]{};  // that holds some, plus one
  std::int32_t begun[lowering::max_streams]{};    // of these what stream 0 knows to have begun
  const auto count = static_cast<std::int32_t>(plan.instructions.size());
  for (std::int32_t index = 0; index < count; ++index) {
    const instruction& at = plan.instructions[static_cast<std::size_t>(index)];
    if (at.stream != 0) {
      if (plan.part_of(index).holds > 0) last_on[at.stream] = index + 1;
      continue;
    }
    for (const event_wait& wait : plan.waits_of(at)) {
      if (wait.why != wait_reason::starts_before || wait.previous_step) continue;
      for (const std::int32_t last : last_on)
        if (last > 0 && plan.part_of(last - 1).started == wait.event)
          begun[plan.instructions[static_cast<std::size_t>(last - 1)].stream] = last;
    }
    if (at.act != action::run) continue;
    for (int stream = 1; stream < lowering::max_streams; ++stream) {
      const std::int32_t last = last_on[stream];
      if (last > begun[stream] && known.at(rank, index).own[stream] < last)
        return refuse(fault::not_resident, reason::starts_unordered, rank, index, at.what,
                      plan.instructions[static_cast<std::size_t>(last - 1)].what);
    }
  }
  return {};
}

}  // namespace stretto::check
