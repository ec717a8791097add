#pragma once

#include <cstdint>
#include <span>

#include "stretto/base/scratch.hpp"
#include "stretto/check/clash.hpp"
#include "stretto/check/race_free.hpp"
#include "stretto/check/timely.hpp"
#include "stretto/lowering/happens_before.hpp"
#include "stretto/model/plan_view.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::check {

namespace detail {

//! What one rank's instructions know at their turn, with one of their waits left out. Clocks are
//! looked at where they lie, one source of knowledge after the other, instead of joined: an
//! instruction knows what any of its sources knows, and a copy is what costs a compiler most.
class knowledge_without {
 public:
  //! @param recorder  of each event, which instruction has recorded it so far, plus one
  constexpr knowledge_without(const plan_view& plan, const lowering::clock_rows& known, int rank,
                              const std::int32_t* recorder)
      : list_(plan.instructions.data()),
        known_(known),
        mine_(known.clocks + static_cast<std::int64_t>(rank) * known.stride),
        rank_(rank),
        waits_(plan.waits.data()),
        recorder_(recorder) {}

  //! Whether `knows(clock)` holds of any source of what `index` knows, but the instruction before
  //! it on its stream.
  template <class Knows>
  constexpr bool others(std::int32_t index, int left_out, const Knows& knows) const {
    return other_waits(index, left_out, knows) ||
           (list_[index].act == action::receive && messages(index, knows));
  }

  //! The same of what a message that `index` receives brings.
  template <class Knows>
  constexpr bool messages(std::int32_t index, const Knows& knows) const {
    const instruction& here = list_[index];
    lowering::clock now = mine_[index];
    if (now.lap > 0 && knows(mine_[now.lap - 1])) return true;
    // What its peer knew of this rank as it sent.
    const int side = lowering::side_of(here.peer, rank_, known_.ranks);
    if (side < 0) return false;
    const std::int32_t heard = known_.at(here.peer, now.partner - 1).side[side];
    return heard > 0 && knows(mine_[heard - 1]);
  }

  //! The same of what `index` knows as it starts: a message that it is half of says nothing yet.
  template <class Knows>
  constexpr bool other_waits(std::int32_t index, int left_out, const Knows& knows) const {
    const instruction& here = list_[index];
    const int end = here.first_wait + here.wait_count;
    event_wait other;  // here, because compilers are slow to make what a loop holds
    for (int wait = here.first_wait; wait < end; ++wait) {
      if (wait == left_out) continue;
      other = waits_[wait];
      // Of those that say that an instruction of this step has ended.
      if (other.previous_step || other.why == wait_reason::starts_before) continue;
      if (recorder_[other.event] > 0 && knows(mine_[recorder_[other.event] - 1])) return true;
    }
    return false;
  }

 private:
  const instruction* list_;
  lowering::clock_rows known_;
  const lowering::clock* mine_;
  int rank_;
  const event_wait* waits_;
  const std::int32_t* recorder_;
};

//! A wait that orders nothing, or an event that nobody waits for.
struct idle_wait {
  std::int32_t index = -1;  //!< instruction that waits, or records; -1: there is none
  std::int32_t wait = -1;   //!< into plan_view::waits; -1: the event
  std::int32_t event = -1;
  std::int32_t gate = -1;   //!< without it, nothing orders the receive after what it must not be
                            //!< posted before, which is this; -1: all is in order
};

//! Calls `found` for every wait and event of a rank's plan that breaks rule spare.
//! @param found  (idle_wait): returns whether to go on. Before it does, it must have taken away
//!               what it was told of: the event; or the wait, by writing in its place one of the
//!               step before for event -1; or, where there is a gate, have made it a wait for the
//!               gate, which then records an event
template <class Found>
constexpr void each_idle(std::span<const plan_view> plans, lowering::clock_rows known, int rank,
                         const Found& found) {
  const plan_view& plan = plans[static_cast<std::size_t>(rank)];
  if (!plan.ranges.empty()) {
    const lowering::whole_uses in_parts(plans, rank);
    return each_idle(in_parts.views(), known, rank, found);
  }
  scratch<std::int32_t> recorders(plan.events);  // so far
  std::int32_t* const recorder = recorders.data();
  const knowledge_without knowledge(plan, known, rank, recorder);
  const receive_gate_table gates(plan);
  scratch<bool> waited_events(plan.events);
  bool* const waited = waited_events.data();
  std::int32_t last_on[lowering::max_streams]{};
  std::int32_t begun[lowering::max_streams]{};  // what stream 0 has waited to begin, plus one
  const instruction* const list = plan.instructions.data();
  const event_wait* const waits = plan.waits.data();
  const auto count = static_cast<std::int32_t>(plan.instructions.size());
  const buffer_use* const uses = plan.uses.data();
  const buffer* const buffers = plan.buffers.data();
  const std::int32_t* const released = plan.released.data();
  const lowering::clock* const row =
      known.clocks + static_cast<std::int64_t>(rank) * known.stride;
  const op_part* const parts = plan.parts.empty() ? nullptr : plan.parts.data();
  // Of the instruction and the wait at hand; here, because compilers are slow to make what loops
  // hold.
  std::int32_t index = 0;
  instruction at;
  std::int32_t before = -1;  // on its stream
  int next = 0;
  int end = 0;
  int wait = 0;
  event_wait event;
  std::int32_t by = 0;  // what is waited for
  instruction recorded;
  buffer_use made;
  buffer taken;
  buffer left;
  std::int32_t next_freed = 0;
  bool start = false;
  int next_beside = 0;  // of the waits beside it
  event_wait beside;
  bool needed = false;
  // Whether the instruction may know of the sent message's receive; neighbours are told without a
  // call.
  const auto heard = [&] {
    const int side = recorded.peer == rank + 1 ? 1
                     : recorded.peer == rank - 1
                         ? 0
                         : lowering::side_of(rank, recorded.peer, known.ranks);
    return side >= 0 && row[index].side[side] >= row[by].partner;
  };
  // Whether nothing but the wait says that the receive's gate has ended.
  const auto gates_alone = [&] {
    const std::int32_t gate = gates.of(index);
    if (gate < 0) return false;
    const auto ended = [&](const lowering::clock& now) {
      return now.own[list[gate].stream] > gate;
    };
    return !(before >= 0 && ended(row[before])) && !knowledge.other_waits(index, wait, ended);
  };
  // Whether a clock says that the other instruction, which is no send, has ended.
  const auto ended = [&](const lowering::clock& now) { return now.own[recorded.stream] > by; };
  // Whether nothing but the wait says that the other instruction has ended.
  const auto tells_alone = [&] {
    const done_when done(plan, known, plans, by);
    return !(before >= 0 && done(row[before])) && !knowledge.others(index, wait, done);
  };
  // Whether a wait for something else than data has its reason, and is needed for it.
  const auto has_reason = [&] {
    switch (event.why) {
      case wait_reason::bound:
        return at.act == action::end_step && !waited[event.event] &&
               last_on[recorded.stream] == by + 1;
      case wait_reason::gate: {
        // The step before ended on the stream of the last instruction.
        bool told_alone = at.stream != recorded.stream && !(before >= 0 && row[before].begun);
        for (int other = at.first_wait; other < end; ++other)
          if (other != wait && waits[other].previous_step && waits[other].event == event.event)
            told_alone = false;
        return told_alone &&
               !knowledge.others(index, wait, [](const lowering::clock& now) { return now.begun; });
      }
      case wait_reason::lead: return gates.of(index) == by && gates_alone();
      default: {
        std::int32_t& latest = begun[recorded.stream];
        const bool reason = at.stream == 0 && recorded.stream != 0 && plan.part_of(by).holds > 0 &&
                            latest <= by && tells_alone();
        if (reason) latest = by + 1;
        return reason;
      }
    }
  };
  for (; index < count; ++index) {
    at = list[index];
    before = last_on[at.stream] - 1;
    last_on[at.stream] = index + 1;
    next = at.first_wait;
    end = next + at.wait_count;
    while (next < end) {
      wait = next++;
      event = waits[wait];
      // Of the step before only the end is waited for.
      by = event.previous_step ? count - 1 : recorder[event.event] - 1;
      needed = false;
      if (by >= 0) {
        recorded = list[by];
        start = recorded.record != event.event;
        if (event.why == wait_reason::data && !start && !event.previous_step) {
          // Mostly what the other made, the last of its uses, is one of the first two.
          if (recorded.use_count > 0) {
            made = uses[recorded.first_use + recorded.use_count - 1];
            needed = at.use_count > 0 && made.mode != access::read &&
                     (uses[at.first_use].buffer == made.buffer ||
                      (at.use_count > 1 && uses[at.first_use + 1].buffer == made.buffer));
          }
          // Or a message takes its first one's place.
          if (!needed && at.act == action::receive && at.use_count > 0 && recorded.use_count > 0) {
            taken = buffers[uses[at.first_use].buffer];
            left = buffers[uses[recorded.first_use].buffer];
            needed = taken.offset == left.offset && taken.bytes > 0 && left.bytes > 0 &&
                     uses[at.first_use].mode != access::read;
          }
          // Or it is sent, and given back here.
          if (recorded.act == action::send && recorded.use_count > 0)
            for (next_freed = at.first_release;
                 !needed && next_freed < at.first_release + at.release_count; ++next_freed)
              needed = released[next_freed] == made.buffer &&
                       !plan.released_as_ends(made.buffer, index);
          needed = needed || clash(plan, by, recorded, index, at) ||
                   (parts != nullptr && clash_behind(plan, by, recorded, index));
          // And mostly it is the stream, or another wait, that is asked whether the other has
          // ended; what the peer says of a message nobody may have heard of.
          if (needed && recorded.act == action::send && (at.act == action::receive || heard())) {
            needed = tells_alone();
          } else if (needed) {
            needed = before < 0 || row[before].own[recorded.stream] <= by;
            next_beside = at.wait_count == 1 ? end : at.first_wait;
            for (; needed && next_beside < end; ++next_beside) {
              if (next_beside == wait) continue;
              beside = waits[next_beside];
              if (!beside.previous_step && beside.why != wait_reason::starts_before &&
                  recorder[beside.event] > 0)
                needed = row[recorder[beside.event] - 1].own[recorded.stream] <= by;
            }
            if (needed && at.act == action::receive) needed = !knowledge.messages(index, ended);
          }
        } else if (event.previous_step == (event.why == wait_reason::gate) &&
                   start == (event.why == wait_reason::starts_before)) {
          needed = has_reason();
        }
      }
      if (needed) {
        waited[event.event] = true;
      } else {
        const std::int32_t gate = gates_alone() ? gates.of(index) : -1;
        if (!found(idle_wait{index, wait, event.event, gate})) return;
        if (gate >= 0) waited[list[gate].record] = true;
      }
    }
    if (at.record >= 0) recorder[at.record] = index + 1;
    if (parts != nullptr && parts[index].started >= 0) recorder[parts[index].started] = index + 1;
  }
  std::int32_t awaited = 0;
  while (awaited < plan.events && waited[awaited]) ++awaited;
  if (awaited == plan.events) return;
  for (index = 0; index < count; ++index) {
    at = list[index];
    const std::int32_t started = plan.part_of(index).started;
    if (at.record >= 0 && !waited[at.record] && !found(idle_wait{index, -1, at.record})) return;
    if (started >= 0 && !waited[started] && !found(idle_wait{index, -1, started})) return;
  }
}

}  // namespace detail

//! Rule spare, for one rank: every event is waited for, and every wait has its reason and is
//! needed for it. `data`: the two instructions touch the same bytes, one writing or giving them
//! back, and without the wait nothing orders them; a piece of an op may wait for those behind it.
//! `gate`: without it the instruction could run before the previous step has ended. `bound`: the
//! instruction is the last of its stream, and nobody else waits for it, so that the step could end
//! before it without the wait. `starts_before`: see rule resident; `lead`: see rule timely. So
//! removing any one breaks the rule of its reason.
constexpr verdict spare(std::span<const plan_view> plans, lowering::clock_rows known, int rank) {
  detail::idle_wait found;
  detail::each_idle(plans, known, rank, [&](const detail::idle_wait& first) {
    found = first;
    return false;
  });
  if (found.index < 0) return {};
  const plan_view& plan = plans[static_cast<std::size_t>(rank)];
  const job& here = plan.instructions[static_cast<std::size_t>(found.index)].what;
  if (found.wait < 0)
    return refuse(fault::idle_event, reason::event_removable, rank, found.index, here);
  // Whoever records the event; nobody may.
  const auto count = static_cast<std::int32_t>(plan.instructions.size());
  std::int32_t by = 0;
  while (by < count && plan.instructions[static_cast<std::size_t>(by)].record != found.event &&
         plan.part_of(by).started != found.event)
    ++by;
  return refuse(fault::idle_event, reason::event_removable, rank, found.index, here,
                by < count ? plan.instructions[static_cast<std::size_t>(by)].what : job{});
}

}  // namespace stretto::check
