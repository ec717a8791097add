#pragma once

#include <cstdint>
#include <span>

#include "stretto/base/scratch.hpp"
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
  constexpr knowledge_without(std::span<const plan_view> plans, const lowering::clock_rows& known,
                              int rank)
      : plans_(plans.data()),
        list_(plans_[rank].instructions.data()),
        known_(known),
        mine_(known.clocks + static_cast<std::int64_t>(rank) * known.stride),
        rank_(rank),
        waits_(plans_[rank].waits.data()),
        recorders_(plans_[rank].events),
        recorder_(recorders_.data()) {
    const auto count = static_cast<std::int32_t>(plans_[rank].instructions.size());
    for (std::int32_t at = 0; at < count; ++at)
      if (const std::int32_t event = list_[at].record; event >= 0) recorder_[event] = at;
    for (std::size_t at = 0; at < plans_[rank].parts.size(); ++at)
      if (const std::int32_t event = plans_[rank].parts[at].started; event >= 0)
        recorder_[event] = static_cast<std::int32_t>(at);
  }

  constexpr ~knowledge_without() = default;  // nvcc does not find it constexpr by itself

  constexpr std::int32_t recorder(std::int32_t event) const { return recorder_[event]; }

  //! Whether `knows(clock)` holds of any source of what `index` knows, but the instruction before it
  //! on its stream.
  //! @param peer_before  of the other half of a message the instruction before it, or -1
  template <class Knows>
  constexpr bool others(std::int32_t index, int left_out, std::int32_t peer_before,
                        const Knows& knows) const {
    if (other_waits(index, left_out, knows)) return true;
    const instruction& here = list_[index];
    if (here.act != action::receive) return false;
    const lowering::clock& now = mine_[index];
    return (now.lap > 0 && knows(mine_[now.lap - 1])) ||
           peer_knows(here.peer, now.partner - 1, peer_before, knows);
  }

  //! The same of what `index` knows as it starts: a message that it is half of says nothing yet.
  template <class Knows>
  constexpr bool other_waits(std::int32_t index, int left_out, const Knows& knows) const {
    const instruction& here = list_[index];
    const int end = here.first_wait + here.wait_count;
    for (int wait = here.first_wait; wait < end; ++wait)
      if (wait != left_out && ends(waits_[wait]) && knows(mine_[recorder_[waits_[wait].event]]))
        return true;
    return false;
  }

  //! The instruction before `index` on its stream; walks back, a few entries as a rule.
  constexpr std::int32_t before(int rank, std::int32_t index) const {
    const instruction* const list = plans_[rank].instructions.data();
    const int stream = list[index].stream;
    while (--index >= 0 && list[index].stream != stream) {
    }
    return index;
  }

 private:
  //! The other half of a message, `there` of `peer`, brings what its own stream and waits know of
  //! this rank.
  template <class Knows>
  constexpr bool peer_knows(int peer, std::int32_t there, std::int32_t peer_before,
                            const Knows& knows) const {
    const int side = lowering::side_of(peer, rank_, known_.ranks);
    if (side < 0) return false;
    const lowering::clock* const theirs =
        known_.clocks + static_cast<std::int64_t>(peer) * known_.stride;
    const auto told = [&](std::int32_t source) {
      const std::int32_t of = theirs[source].side[side];
      return of > 0 && knows(mine_[of - 1]);
    };
    if (peer_before >= 0 && told(peer_before)) return true;
    const plan_view& plan = plans_[peer];
    const instruction& half = plan.instructions.data()[there];
    for (int wait = half.first_wait; wait < half.first_wait + half.wait_count; ++wait) {
      const event_wait& event = plan.waits[static_cast<std::size_t>(wait)];
      if (!ends(event)) continue;
      const std::int32_t by = recorder_at(plan, event.event, there);
      if (by >= 0 && told(by)) return true;
    }
    return false;
  }
  //! Whether it says that an instruction of this step has ended.
  static constexpr bool ends(const event_wait& wait) {
    return !wait.previous_step && wait.why != wait_reason::starts_before;
  }
  static constexpr std::int32_t recorder_at(const plan_view& plan, std::int32_t event,
                                            std::int32_t from) {
    const instruction* const list = plan.instructions.data();
    while (--from >= 0 && list[from].record != event) {
    }
    return from;
  }

  const plan_view* plans_;
  const instruction* list_;
  lowering::clock_rows known_;
  const lowering::clock* mine_;
  int rank_;
  const event_wait* waits_;
  scratch<std::int32_t> recorders_;
  std::int32_t* recorder_;
};

//! Whether two instructions touch a common buffer (it may be empty) or byte, and one of them writes
//! it, or the other writes to what the one (or the node whose last op it is) has released before.
//! @param index  of `one`
constexpr bool clash(const plan_view& plan, std::int32_t index, const instruction& one,
                     const instruction& other) {
  const buffer_use* const uses = plan.uses.data();
  const buffer* const buffers = plan.buffers.data();
  // What a job makes for another is the last of its uses, what it is brought the first.
  const buffer_use* const first = uses + one.first_use;
  const buffer_use* const begin = uses + other.first_use;
  const buffer_use* const end = begin + other.use_count;
  for (const buffer_use* a = first + one.use_count; a != first;) {
    --a;
    const bool reads = a->mode == access::read;
    const std::int32_t id = a->buffer;
    for (const buffer_use* b = begin; b < end; ++b) {
      if (reads && b->mode == access::read) continue;
      if (id == b->buffer) return true;
      const buffer& mine = buffers[id];
      const buffer& theirs = buffers[b->buffer];
      if (mine.offset < theirs.offset + theirs.bytes && theirs.offset < mine.offset + mine.bytes)
        return true;
    }
  }
  const std::int32_t* const released = plan.released.data();
  while (true) {
    const instruction& giver = plan.instructions[static_cast<std::size_t>(index)];
    for (int freed = giver.first_release; freed < giver.first_release + giver.release_count;
         ++freed) {
      if (plan.released_as_ends(released[freed], index)) continue;  // by the one before
      for (const buffer_use* b = uses + other.first_use;
           b < uses + other.first_use + other.use_count; ++b) {
        const buffer& mine = buffers[released[freed]];
        const buffer& theirs = buffers[b->buffer];
        if (b->mode != access::read && mine.offset < theirs.offset + theirs.bytes &&
            theirs.offset < mine.offset + mine.bytes)
          return true;
      }
    }
    // The last op of a node speaks for its first, before which buffers are released.
    if (index == 0 || plan.part_of(--index).ends != 0) return false;
  }
}

//! A wait that orders nothing, or an event that nobody waits for.
struct idle_wait {
  std::int32_t index = -1;  //!< instruction that waits, or records; -1: there is none
  std::int32_t wait = -1;   //!< into plan_view::waits; -1: the event
  std::int32_t event = -1;
};

//! The first of a rank's plan; see rule spare.
constexpr idle_wait first_idle(std::span<const plan_view> plans, lowering::clock_rows known,
                               int rank) {
  const plan_view& plan = plans[static_cast<std::size_t>(rank)];
  if (!plan.ranges.empty()) {
    const lowering::whole_uses in_parts(plans, rank);
    return first_idle(in_parts.views(), known, rank);
  }
  const knowledge_without knowledge(plans, known, rank);
  const receive_gate_table gates(plan);
  scratch<bool> waited_events(plan.events);
  bool* const waited = waited_events.data();
  std::int32_t last_on[lowering::max_streams]{};
  std::int32_t begun[lowering::max_streams]{};  // what stream 0 has waited to begin, plus one
  const instruction* const list = plan.instructions.data();
  const event_wait* const waits = plan.waits.data();
  const auto count = static_cast<std::int32_t>(plan.instructions.size());
  const buffer_use* const uses = plan.uses.data();
  const lowering::clock* const row =
      known.clocks + static_cast<std::int64_t>(rank) * known.stride;
  std::int32_t by = 0;  // what is waited for
  instruction recorded;
  const auto done = [&](const lowering::clock& now) {
    return now.own[recorded.stream] > by ||
           (recorded.act == action::send && done_before(plan, known, plans, now, by));
  };
  for (std::int32_t index = 0; index < count; ++index) {
    const instruction at = list[index];
    const std::int32_t before = last_on[at.stream] - 1;
    last_on[at.stream] = index + 1;
    if (at.wait_count == 0) continue;
    const std::int32_t peer_before =
        at.act == action::receive ? knowledge.before(at.peer, row[index].partner - 1) : -1;
    for (int wait = at.first_wait; wait < at.first_wait + at.wait_count; ++wait) {
      const event_wait event = waits[wait];
      by = knowledge.recorder(event.event);
      recorded = list[by];
      const bool start = recorded.record != event.event;
      bool needed = false;
      if (event.previous_step != (event.why == wait_reason::gate) ||
          start != (event.why == wait_reason::starts_before)) {
        needed = false;  // only the step's end is waited for from the step before
      } else if (event.why == wait_reason::bound) {
        needed = at.act == action::end_step && !waited[event.event] &&
                 last_on[recorded.stream] == by + 1;
      } else if (event.why == wait_reason::gate) {
        // The step before ended on the stream of the last instruction.
        needed = by + 1 == count && at.stream != list[count - 1].stream;
        for (int other = at.first_wait; other < at.first_wait + at.wait_count; ++other)
          if (other != wait && waits[other].previous_step && waits[other].event == event.event)
            needed = false;
        needed = needed && !(before >= 0 && row[before].begun) &&
                 !knowledge.others(index, wait, peer_before,
                                   [](const lowering::clock& now) { return now.begun; });
      } else if (event.why == wait_reason::lead) {
        needed = gates.of(index) == by && !(before >= 0 && row[before].own[recorded.stream] > by) &&
                 !knowledge.other_waits(index, wait, [&](const lowering::clock& now) {
                   return now.own[recorded.stream] > by;
                 });
      } else {
        // Mostly what the other made, the last of its uses, is one of the first two.
        if (!start && recorded.use_count > 0 && at.use_count > 0) {
          const buffer_use made = uses[recorded.first_use + recorded.use_count - 1];
          needed = made.mode != access::read &&
                   (uses[at.first_use].buffer == made.buffer ||
                    (at.use_count > 1 && uses[at.first_use + 1].buffer == made.buffer));
        }
        if (!needed)
          needed = start ? at.stream == 0 && recorded.stream != 0 && plan.part_of(by).holds > 0 &&
                               begun[recorded.stream] <= by
                         : clash(plan, by, recorded, at);
        // Mostly there is but the stream to ask.
        const bool alone = at.wait_count == 1 && at.act != action::receive;
        needed = needed && !(before >= 0 && done(row[before])) &&
                 (alone || !knowledge.others(index, wait, peer_before, done));
        if (start) begun[recorded.stream] = by + 1;
      }
      waited[event.event] = true;
      if (!needed) return {index, wait, event.event};
    }
  }
  std::int32_t awaited = 0;
  while (awaited < plan.events && waited[awaited]) ++awaited;
  if (awaited == plan.events) return {};
  for (std::int32_t index = 0; index < count; ++index) {
    if (const std::int32_t event = list[index].record; event >= 0 && !waited[event])
      return {index, -1, event};
    if (const std::int32_t event = plan.part_of(index).started; event >= 0 && !waited[event])
      return {index, -1, event};
  }
  return {};
}

}  // namespace detail

//! Rule 7, spare, for one rank: every event is waited for, and every wait has its reason and is
//! needed for it. `data`: the two instructions touch the same bytes, one writing or giving them
//! back, and without the wait nothing orders them. `gate`: without it the instruction could run
//! before the previous step has ended. `bound`: the instruction is the last of its stream, and
//! nobody else waits for it, so that the step could end before it without the wait. `starts_before`:
//! see rule resident; `lead`: see rule timely. So removing any one breaks the rule of its reason.
constexpr verdict spare(std::span<const plan_view> plans, lowering::clock_rows known, int rank) {
  const detail::idle_wait found = detail::first_idle(plans, known, rank);
  if (found.index < 0) return {};
  const plan_view& plan = plans[static_cast<std::size_t>(rank)];
  const job& here = plan.instructions[static_cast<std::size_t>(found.index)].what;
  if (found.wait < 0)
    return refuse(fault::idle_event, reason::event_removable, rank, found.index, here);
  const detail::knowledge_without knowledge(plans, known, rank);
  const auto by = static_cast<std::size_t>(knowledge.recorder(found.event));
  return refuse(fault::idle_event, reason::event_removable, rank, found.index, here,
                plan.instructions[by].what);
}

}  // namespace stretto::check
