#pragma once

#include <cstddef>
#include <cstdint>

#include "stretto/model/plan_view.hpp"

namespace stretto::check::detail {

//! Whether the order of two instructions matters: they touch a common buffer (it may be empty) or
//! common bytes, and one of them writes; or the later one writes bytes that the earlier (or the
//! node that it is the last op of) has released; or the later one releases what the earlier
//! touches, before it starts or as it ends.
//! @param index  of `one`, the earlier
//! @param later  of `other`
constexpr bool clash(const plan_view& plan, std::int32_t index, const instruction& one,
                     std::int32_t later, const instruction& other) {
  const buffer_use* const uses = plan.uses.data();
  const buffer* const buffers = plan.buffers.data();
  const std::int32_t* const released = plan.released.data();
  for (int theirs = other.first_use; theirs < other.first_use + other.use_count; ++theirs) {
    buffer_use its = uses[theirs];
    buffer place = buffers[its.buffer];
    const std::int64_t end = place.offset + place.bytes;
    const auto held = [&](std::int32_t id) {
      buffer before = buffers[id];
      return before.offset < end && place.offset < before.offset + before.bytes;
    };
    for (int mine = one.first_use; mine < one.first_use + one.use_count; ++mine) {
      buffer_use used = uses[mine];
      if ((used.mode != access::read || its.mode != access::read) &&
          (used.buffer == its.buffer || held(used.buffer)))
        return true;
    }
    if (its.mode == access::read) continue;
    for (std::int32_t giver = index; giver >= 0; --giver) {
      // The last op of a node speaks for its first, before which buffers are released.
      if (giver < index && plan.part_of(giver).ends != 0) break;
      instruction gives = plan.instructions[static_cast<std::size_t>(giver)];
      for (int freed = gives.first_release; freed < gives.first_release + gives.release_count;
           ++freed)
        if (held(released[freed]) && !plan.released_as_ends(released[freed], giver)) return true;
    }
  }
  for (int freed = other.first_release; freed < other.first_release + other.release_count; ++freed)
    for (int mine = one.first_use; mine < one.first_use + one.use_count; ++mine)
      if (uses[mine].buffer == released[freed] && !plan.released_as_ends(released[freed], later))
        return true;
  // What the later one gives back as it ends.
  const auto next = static_cast<std::size_t>(later) + 1;
  if (next == plan.instructions.size()) return false;
  for (const std::int32_t freed : plan.released_before(plan.instructions[next]))
    for (int mine = one.first_use; mine < one.first_use + one.use_count; ++mine)
      if (uses[mine].buffer == freed && plan.released_as_ends(freed, later + 1)) return true;
  return false;
}

//! The same of pieces of an op behind one that waits for them all, too: they stand on its stream.
constexpr bool clash_behind(const plan_view& plan, std::int32_t index, const instruction& one,
                            std::int32_t piece) {
  const op_part first = plan.part_of(piece);
  const instruction& waits = plan.instructions[static_cast<std::size_t>(piece)];
  const auto count = static_cast<std::int32_t>(plan.instructions.size());
  for (std::int32_t later = piece + 1; first.piece + 1 < first.pieces && later < count; ++later) {
    const op_part part = plan.part_of(later);
    const instruction& other = plan.instructions[static_cast<std::size_t>(later)];
    if (part.op != first.op || other.stream != waits.stream || !(other.what == waits.what))
      continue;
    if (part.piece <= first.piece) break;
    if (clash(plan, index, one, later, other)) return true;
    if (part.piece + 1 == part.pieces) break;
  }
  return false;
}

}  // namespace stretto::check::detail
