#pragma once

#include <cstdint>
#include <span>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/happens_before.hpp"
#include "stretto/model/plan_view.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::check {

namespace detail {

//! For every receive of a plan the instruction that must have ended before it is posted: the last
//! of the node that has plan_view::receive_lead others between itself and the first to read what
//! is received.
class receive_gate_table {
 public:
  static constexpr std::int32_t none = -1;

  constexpr explicit receive_gate_table(const plan_view& plan)
      : gate_(plan.receive_lead < 0 ? 0 : static_cast<std::int64_t>(plan.instructions.size())) {
    if (plan.receive_lead < 0) return;
    scratch<std::int32_t> filled(static_cast<std::int64_t>(plan.buffers.size()));  // by, plus one
    scratch<std::int32_t> ends(gate_.size());                                      // of nodes
    std::int32_t nodes = 0;
    bool half = false;  // of a pair, its second to come
    const auto count = static_cast<std::int32_t>(plan.instructions.size());
    for (std::int32_t index = 0; index < count; ++index) {
      const instruction& at = plan.instructions[static_cast<std::size_t>(index)];
      gate_[index] = none;
      if (at.act == action::receive) {
        for (const buffer_use& use : plan.uses_of(at)) filled[use.buffer] = index + 1;
      } else if (is_compute(at.what.kind)) {
        for (const buffer_use& use : plan.uses_of(at)) {
          std::int32_t& by = filled[use.buffer];
          if (by > 0 && nodes > plan.receive_lead)
            gate_[by - 1] = ends[nodes - plan.receive_lead - 1];
          by = 0;
        }
        ends[nodes] = index;
        if (at.what.paired && !half) {
          half = true;
        } else if (plan.part_of(index).ends > 0) {
          half = false;
          ++nodes;
        }
      }
    }
  }
  constexpr ~receive_gate_table() = default;  // nvcc does not find it constexpr by itself

  constexpr std::int32_t of(std::int32_t index) const {
    return gate_.size() == 0 ? none : gate_[index];
  }

 private:
  scratch<std::int32_t> gate_;
};

}  // namespace detail

//! Rule timely, for one rank whose plan has a receive lead: no receive can be posted while more
//! nodes than that are to run before the one it is for. What its own stream and its waits say
//! counts; what the message brings comes too late.
//! @param known clocks of the plans, as `plan_order` found them
constexpr verdict timely(std::span<const plan_view> plans, lowering::clock_rows known, int rank) {
  const plan_view& plan = plans[static_cast<std::size_t>(rank)];
  if (plan.receive_lead < 0) return {};
  const detail::receive_gate_table gates(plan);
  scratch<std::int32_t> recorder(plan.events);  // of each event, index plus one
  std::int32_t last_on[lowering::max_streams]{};
  const auto count = static_cast<std::int32_t>(plan.instructions.size());
  for (std::int32_t index = 0; index < count; ++index) {
    const instruction& at = plan.instructions[static_cast<std::size_t>(index)];
    const std::int32_t before = last_on[at.stream];
    last_on[at.stream] = index + 1;
    if (at.record >= 0) recorder[at.record] = index + 1;
    const std::int32_t gate = gates.of(index);
    if (gate < 0) continue;
    const int stream = plan.instructions[static_cast<std::size_t>(gate)].stream;
    const auto ended = [&](std::int32_t by) {
      return by > 0 && known.at(rank, by - 1).own[stream] > gate;
    };
    bool posted = ended(before);
    for (const event_wait& wait : plan.waits_of(at))
      posted = posted || (!wait.previous_step && wait.why != wait_reason::starts_before &&
                          ended(recorder[wait.event]));
    if (!posted)
      return refuse(fault::untimely, reason::posted_early, rank, index, at.what,
                    plan.instructions[static_cast<std::size_t>(gate)].what);
  }
  return {};
}

}  // namespace stretto::check
