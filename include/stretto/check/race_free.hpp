#pragma once

#include <cstdint>
#include <span>

#include "stretto/base/scratch.hpp"
#include "stretto/check/byte_owners.hpp"
#include "stretto/lowering/happens_before.hpp"
#include "stretto/lowering/whole_uses.hpp"
#include "stretto/model/plan_view.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::check {

namespace detail {

//! Whether one instruction of the plan's rank is done whenever somebody who knows a clock has his
//! turn. Of a send its receive, which says so, too, is looked up once.
class done_when {
 public:
  constexpr done_when(const plan_view& plan, const lowering::clock_rows& known,
                      const std::span<const plan_view>& plans, std::int32_t earlier)
      : earlier_(earlier) {
    const instruction& before = plan.instructions.data()[earlier];
    stream_ = before.stream;
    if (before.act != action::send) return;
    side_ = lowering::side_of(plan.rank, before.peer, known.ranks);
    if (side_ < 0) return;
    there_ = known.at(plan.rank, earlier).partner - 1;
    peer_ = known.row(before.peer);
    receives_ = plans.data()[before.peer].instructions.data()[there_].stream;
  }
  //! Nobody on the peer knows of its receive before that has come.
  constexpr bool operator()(const lowering::clock& now) const {
    return now.own[stream_] > earlier_ ||
           (side_ >= 0 && now.side[side_] > there_ &&
            peer_[now.side[side_] - 1].own[receives_] > there_);
  }

 private:
  std::int32_t earlier_;
  int stream_ = 0;
  int side_ = -1;           // of the peer that takes it; -1: nothing is heard of it
  std::int32_t there_ = 0;  // the receive, and its stream
  int receives_ = 0;
  const lowering::clock* peer_ = nullptr;
};

constexpr bool done_before(const plan_view& plan, const lowering::clock_rows& known,
                           const std::span<const plan_view>& plans, const lowering::clock& now,
                           std::int32_t earlier) {
  return done_when(plan, known, plans, earlier)(now);
}

//! Who has touched a buffer so far; indices plus one. No initialisers: see scratch.
struct accesses {
  std::int32_t written;     // latest write
  std::int32_t release;     // the instruction before which its life is over
  std::int32_t behind_all;  // latest access, if all others were done before it; else 0,
  std::int32_t behind_on;   // and on which stream
  std::int32_t on[lowering::max_streams];  // else the latest of each stream

  //! One that is not known to come after all others.
  constexpr void come(std::int32_t index, int stream) {
    if (behind_all > 0) {
      for (std::int32_t& latest : on) latest = 0;
      on[behind_on] = behind_all;
    }
    on[stream] = index + 1;
    behind_all = 0;
  }
  //! The latest on `stream`, if it matters.
  constexpr std::int32_t latest(int stream) const {
    return behind_all == 0 ? on[stream] : behind_on == stream ? behind_all : 0;
  }
};

//! Whether `earlier` is done before instruction `index` of the rank starts: what a message of its
//! own tells comes later.
constexpr bool done_before_start(const plan_view& plan, lowering::clock_rows known,
                                 std::span<const plan_view> plans, std::int32_t index,
                                 std::int32_t earlier) {
  const instruction& at = plan.instructions[static_cast<std::size_t>(index)];
  bool stream_told = false;
  for (std::int32_t told = index - 1; told >= 0; --told) {
    const instruction& by = plan.instructions[static_cast<std::size_t>(told)];
    bool hears = !stream_told && by.stream == at.stream;
    stream_told = stream_told || hears;
    for (const event_wait& wait : plan.waits_of(at))
      hears = hears || (wait.event == by.record && !wait.previous_step);
    if (hears && done_before(plan, known, plans, known.at(plan.rank, told), earlier)) return true;
  }
  return false;
}

//! Whether the buffer's accesses are done when it is released before `index`, where the fast way to
//! say so does not do.
constexpr bool all_done(const plan_view& plan, lowering::clock_rows known,
                        std::span<const plan_view> plans, const accesses& of,
                        std::int32_t index) {
  bool as_ends = false;
  if (index > 0) {
    const instruction& before = plan.instructions[static_cast<std::size_t>(index - 1)];
    as_ends = before.act != action::send && of.latest(before.stream) == index;
  }
  for (int stream = 0; stream < lowering::max_streams; ++stream)
    if (const std::int32_t last = of.latest(stream);
        last > 0 && !(as_ends && last == index) &&
        !(as_ends ? done_before(plan, known, plans, known.at(plan.rank, index - 1), last - 1)
                  : done_before_start(plan, known, plans, index, last - 1)))
      return false;
  return true;
}

}  // namespace detail

//! Rule race-free, for one rank: every read of a buffer comes after its latest write, every
//! write after all earlier accesses, and the first write after all accesses to whatever buffers
//! held the same bytes before, whose lives are over; a buffer is released after all accesses to it,
//! whether or not its bytes are used again, and used again after that (whose stream gives it back:
//! plan_view::released_as_ends); every channel stays on one stream; every instruction comes after
//! the end of the rank's previous step, and the step's end after every instruction. The last two
//! make two unrolled steps race-free, both with the same offsets and events: whatever the first
//! step did is done before the second begins. A send counts as done when its stream says so, or
//! when something received from the peer proves that it was taken; not so at the step's end, where
//! nothing may be left running here. No buffer lies outside the arena and the host's memory behind
//! it. Of what pieces of ops touch in part, all this holds byte by byte.
//! @param known clocks of the plans, as `plan_order` found them
constexpr verdict race_free(std::span<const plan_view> plans, lowering::clock_rows known,
                            int rank) {
  const plan_view& plan = plans[static_cast<std::size_t>(rank)];
  if (!plan.ranges.empty()) {
    const lowering::whole_uses in_parts(plans, rank);
    return race_free(in_parts.views(), known, rank);
  }
  const instruction* const list = plan.instructions.data();
  const buffer* const buffers = plan.buffers.data();
  const auto count = static_cast<std::int32_t>(plan.instructions.size());
  const auto kept = static_cast<std::int64_t>(plan.buffers.size());
  const buffer_use* const uses = plan.uses.data();
  const event_wait* const waits = plan.waits.data();
  const std::int32_t* const released = plan.released.data();
  const lowering::clock* const row =
      known.clocks + static_cast<std::int64_t>(rank) * known.stride;
  constexpr int streams = lowering::max_streams;
  scratch<detail::accesses> made(kept);
  detail::accesses* const accessed = made.data();
  detail::byte_owners owners(kept);
  scratch<std::int32_t> channels(2 * std::int64_t{plan.ranks});  // to and from: stream plus one
  std::int32_t* const channel_on = channels.data();
  std::int32_t last_on[streams]{};
  int streams_seen = 0;

  // What is said of the instruction, the use and the buffer at hand. All stands here, is copied,
  // and counted by index, for the compilers' sake: they are slow to make what a loop holds, to read
  // a constant, and to move a pointer.
  std::int32_t index = 0;
  std::int32_t next = 0;
  std::int32_t end = 0;
  instruction at;
  lowering::clock now{};
  int mine = 0;
  buffer_use touched;
  bool behind = false;
  buffer bytes;
  std::int32_t clash = 0;
  const auto after_accesses = [&](const detail::accesses& of) {
    for (int stream = 0; stream < streams_seen; ++stream)
      // Mostly the rank's own streams have told; what they have not may be a send that was taken.
      if (const std::int32_t last = of.latest(stream);
          last > now.own[stream] && last - 1 != index &&
          !detail::done_before(plan, known, plans, now, last - 1))
        clash = last;
  };
  const auto after_owner = [&](std::int32_t owner) {
    const detail::accesses& its = accessed[owner];
    const std::int32_t last = its.behind_all;
    if (last == 0 || last > now.own[its.behind_on]) after_accesses(its);
    const std::int32_t gave = its.release;
    if (gave > bytes.first) clash = its.written;
    // Given back by the instruction behind it, which is another one that has not started?
    else if (gave < index && now.own[list[gave].stream] <= gave &&
             (list[gave - 1].act == action::send ||
              (last != gave && its.latest(list[gave - 1].stream) != gave)) &&
             !detail::done_before(plan, known, plans, now, gave))
      clash = gave + 1;
  };
  for (; index < count; ++index) {
    at = list[index];
    now = row[index];
    mine = at.stream;
    if (at.release_count > 0) {
      next = at.first_release;
      end = next + at.release_count;
      while (next < end) {
        const detail::accesses& of = accessed[released[next++]];
        const std::int32_t last = of.behind_all;
        // Mostly the instruction before is the last to touch it, or a job knows that it was sent.
        const bool done =
            last > 0 &&
            ((last == index && list[index - 1].act != action::send) ||
             (at.act == action::run && last <= now.own[of.behind_on]));
        if (of.written == 0 || of.release != index ||
            (!done && !detail::all_done(plan, known, plans, of, index)))
          return refuse(fault::race, reason::released_early, rank, index, at.what);
      }
    }
    last_on[mine] = index + 1;
    if (mine >= streams_seen) streams_seen = mine + 1;
    if (!now.begun)
      return refuse(fault::race, reason::overwritten_while_read, rank, index, at.what);
    if (at.act == action::send || at.act == action::receive) {
      // Streams number the messages of a channel; two streams would not agree.
      std::int32_t& stream = channel_on[2 * at.peer + (at.act == action::send)];
      if (stream == 0) stream = mine + 1;
      else if (stream != mine + 1)
        return refuse(fault::rendezvous, reason::channel_on_two_streams, rank, index, at.what);
    }
    next = at.first_use;
    end = next + at.use_count;
    while (next < end) {
      touched = uses[next++];
      detail::accesses& of = accessed[touched.buffer];
      // Whatever touched the buffer was done before the one that is known to be done?
      behind = of.behind_all > 0 &&
               (of.behind_all <= now.own[of.behind_on] || of.behind_all > index);
      if (!behind) {
        const bool first = of.written == 0;
        bytes = buffers[touched.buffer];
        if (first && touched.mode != access::write)
          return refuse(fault::race, reason::read_before_write, rank, index, at.what);
        if (index < bytes.first)
          return refuse(fault::race, reason::not_released, rank, index, at.what);
        behind = first || touched.mode != access::read;
        if (first) {
          of.release = bytes.release;
          owners.take(bytes.offset, bytes.offset + bytes.bytes, touched.buffer, after_owner);
        } else if (behind) {
          after_accesses(of);
        } else if (const std::int32_t wrote = of.written;
                   wrote > now.own[list[wrote - 1].stream] && wrote - 1 != index &&
                   !detail::done_before(plan, known, plans, now, wrote - 1)) {
          clash = wrote;
        }
        if (clash > 0)
          return refuse(fault::race,
                        behind ? reason::overwritten_while_read : reason::read_before_write, rank,
                        index, at.what, list[clash - 1].what);
      }
      if (index >= of.release)
        return refuse(fault::race, reason::not_released, rank, index, at.what);
      if (touched.mode != access::read) of.written = index + 1;
      if (behind) of.behind_all = index + 1, of.behind_on = mine;
      else of.come(index, mine);
    }
  }
  const std::int32_t below = owners.lowest().begin < 0 ? owners.lowest().owner : -1;
  const std::int32_t outside =
      owners.highest().end > plan.arena_bytes + plan.host_bytes ? owners.highest().owner : below;
  if (outside >= 0) {
    const std::int32_t by = accessed[outside].written - 1;
    return refuse(fault::race, reason::outside_arena, rank, by, list[by].what);
  }
  // The last instruction of a stream is done when the step ends if somebody waits for it: his own
  // stream's last comes later in the list, and the same is asked of it, up to the end itself.
  for (const std::int32_t last : last_on) {
    if (last == 0 || last == count) continue;
    at = list[last - 1];
    // Mostly by the end, so from there back.
    auto wait = static_cast<std::int64_t>(at.record < 0 ? 0 : plan.waits.size());
    while (wait > 0 && (waits[wait - 1].event != at.record || waits[wait - 1].previous_step))
      --wait;
    if (wait == 0)
      return refuse(fault::race, reason::not_released, rank, last - 1, at.what);
  }
  return {};
}

}  // namespace stretto::check
