#pragma once

#include <cstdint>
#include <span>

#include "stretto/base/scratch.hpp"
#include "stretto/check/race_free.hpp"
#include "stretto/lowering/happens_before.hpp"
#include "stretto/model/plan_view.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::check {

namespace detail {

//! What is known at the turn of one instruction, with one of its waits left out.
class knowledge_without {
 public:
  constexpr knowledge_without(std::span<const plan_view> plans, lowering::clock_rows known,
                              int rank)
      : plans_(plans), known_(known), rank_(rank), recorder_(plan(rank).events) {
    const auto list = plan(rank).instructions;
    for (std::size_t at = 0; at < list.size(); ++at)
      if (list[at].record >= 0) recorder_[list[at].record] = static_cast<std::int32_t>(at);
  }

  constexpr ~knowledge_without() = default;  // nvcc does not find it constexpr by itself

  constexpr std::int32_t recorder(std::int32_t event) const { return recorder_[event]; }

  //! @param before the instruction before `index` on its stream, or -1
  //! @param peer_before the same for the other half of a message, on its rank
  constexpr lowering::clock at(std::int32_t index, int left_out, std::int32_t before,
                               std::int32_t peer_before) const {
    const instruction& here = plan(rank_).instructions[static_cast<std::size_t>(index)];
    lowering::clock now{};
    if (before >= 0) now = known_.at(rank_, before);
    if (here.stream == plan(rank_).instructions.back().stream) now.begun = true;
    for (int wait = here.first_wait; wait < here.first_wait + here.wait_count; ++wait) {
      if (wait == left_out) continue;
      const event_wait& event = plan(rank_).waits[static_cast<std::size_t>(wait)];
      if (event.previous_step) {
        now.begun = now.begun || event.event == plan(rank_).instructions.back().record;
      } else {
        now.join(known_.at(rank_, recorder_[event.event]));
      }
    }
    if (here.act != action::send && here.act != action::receive) return now;
    if (const std::int32_t lap = known_.at(rank_, index).lap; lap >= 0)
      now.join(known_.at(rank_, lap));
    // The other half brings what its own stream and waits know of this rank.
    const std::int32_t there = known_.at(rank_, index).partner;
    const int side = 2 * lowering::side_of(here.peer, rank_, known_.ranks);
    if (side < 0) return now;
    const auto learn = [&](const lowering::clock& told) {
      for (int of : {side, side + 1})
        if (told.side[of] > 0) now.join(known_.at(rank_, told.side[of] - 1));
    };
    if (peer_before >= 0) learn(known_.at(here.peer, peer_before));
    const instruction& half = plan(here.peer).instructions[static_cast<std::size_t>(there)];
    for (const event_wait& event : plan(here.peer).waits_of(half))
      if (!event.previous_step)
        if (const std::int32_t by = recorder_at(here.peer, event.event, there); by >= 0)
          learn(known_.at(here.peer, by));
    return now;
  }

  //! The instruction before `index` on its stream; walks back, a few entries as a rule.
  constexpr std::int32_t before(int rank, std::int32_t index) const {
    const auto list = plan(rank).instructions;
    const auto stream = list[static_cast<std::size_t>(index)].stream;
    while (--index >= 0 && list[static_cast<std::size_t>(index)].stream != stream) {
    }
    return index;
  }

 private:
  constexpr const plan_view& plan(int rank) const {
    return plans_[static_cast<std::size_t>(rank)];
  }
  constexpr std::int32_t recorder_at(int rank, std::int32_t event, std::int32_t from) const {
    const auto list = plan(rank).instructions;
    while (--from >= 0 && list[static_cast<std::size_t>(from)].record != event) {
    }
    return from;
  }

  std::span<const plan_view> plans_;
  lowering::clock_rows known_;
  int rank_;
  scratch<std::int32_t> recorder_;
};

//! Whether two instructions touch a common byte and one of them writes it.
constexpr bool clash(const plan_view& plan, const instruction& one, const instruction& other) {
  for (const buffer_use& a : plan.uses_of(one))
    for (const buffer_use& b : plan.uses_of(other)) {
      if (a.mode == access::read && b.mode == access::read) continue;
      const buffer& mine = plan.buffers[static_cast<std::size_t>(a.buffer)];
      const buffer& theirs = plan.buffers[static_cast<std::size_t>(b.buffer)];
      if (mine.offset < theirs.offset + theirs.bytes && theirs.offset < mine.offset + mine.bytes)
        return true;
    }
  return false;
}

}  // namespace detail

//! Rule 7, spare, for one rank: every event is waited for, and every wait has its reason and is
//! needed for it. `data`: the two instructions touch the same bytes, one writing, and without the
//! wait nothing orders them. `gate`: without it the instruction could run before the previous step
//! has ended. `bound`: the instruction is the last of its stream, and nobody else waits for it, so
//! that the step could end before it without the wait. So removing any one
//! breaks the rule of its reason.
constexpr verdict spare(std::span<const plan_view> plans, lowering::clock_rows known, int rank) {
  const plan_view& plan = plans[static_cast<std::size_t>(rank)];
  const detail::knowledge_without knowledge(plans, known, rank);
  scratch<bool> waited(plan.events);
  std::int32_t last_on[lowering::max_streams]{};
  const auto count = static_cast<std::int32_t>(plan.instructions.size());
  for (std::int32_t index = 0; index < count; ++index) {
    const instruction& at = plan.instructions[static_cast<std::size_t>(index)];
    last_on[at.stream] = index + 1;
    if (at.wait_count == 0) continue;
    const bool message = at.act == action::send || at.act == action::receive;
    const std::int32_t before = knowledge.before(rank, index);
    const std::int32_t peer_before =
        message ? knowledge.before(at.peer, known.at(rank, index).partner) : -1;
    for (int wait = at.first_wait; wait < at.first_wait + at.wait_count; ++wait) {
      const event_wait& event = plan.waits[static_cast<std::size_t>(wait)];
      const std::int32_t by = knowledge.recorder(event.event);
      const instruction& recorded = plan.instructions[static_cast<std::size_t>(by)];
      bool needed = false;
      if (event.previous_step != (event.why == wait_reason::gate)) {
        needed = false;  // only the step's end is waited for from the step before
      } else if (event.why == wait_reason::bound) {
        needed = at.act == action::end_step && !waited[event.event] &&
                 last_on[recorded.stream] == by + 1;
      } else {
        const lowering::clock now = knowledge.at(index, wait, before, peer_before);
        needed = event.why == wait_reason::gate
                     ? by + 1 == count && !now.begun
                     : !detail::done_before(plan, known, plans, now, by) &&
                           detail::clash(plan, recorded, at);
      }
      waited[event.event] = true;
      if (!needed)
        return refuse(fault::idle_event, reason::event_removable, rank, index, at.what,
                      recorded.what);
    }
  }
  for (std::int32_t index = 0; index < count; ++index) {
    const instruction& at = plan.instructions[static_cast<std::size_t>(index)];
    if (at.record >= 0 && !waited[at.record])
      return refuse(fault::idle_event, reason::event_removable, rank, index, at.what);
  }
  return {};
}

}  // namespace stretto::check
