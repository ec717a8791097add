#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "stretto/model/placement.hpp"
#include "stretto/model/plan_view.hpp"
#include "stretto/model/replay_input.hpp"
#include "stretto/model/stage_bytes.hpp"

namespace stretto::lowering {

//! How many stages lie on two ranks: each has its weights twice, and gradients to sum before they
//! are used. The middle stage of an odd number of ranks has both directions on one rank.
constexpr int replicated_stages(const placement& where) {
  return where.kind == placement_kind::bidirectional ? where.ranks / 2 * 2 : 0;
}

//! The collectives that end a training step: first those that sum replicas' gradients, one a stage,
//! in the order of the stages; then the user's, whose numbers count on from there.
//! @param bytes_of a stage's stage_bytes
//! @param infos    room for `replicated` and the user's, which refer to `user_members`
//! @param members  room for twice `replicated` and the user's
template <class BytesOf>
constexpr void write_groups(const placement& where, int replicated, const BytesOf& bytes_of,
                            std::span<const group_info> user_infos,
                            std::span<const std::int32_t> user_members, group_info* infos,
                            std::int32_t* members) {
  std::int32_t filled = 0;
  for (std::int32_t stage = 0; replicated > 0 && stage < where.ranks; ++stage) {
    const std::int32_t other = where.ranks - 1 - stage;
    if (other == stage) continue;
    *infos++ = {filled, 2, bytes_of(stage).gradients / 4, false, stage};
    members[filled++] = stage < other ? stage : other;
    members[filled++] = stage < other ? other : stage;
  }
  for (group_info info : user_infos) {
    info.first += filled;
    *infos++ = info;
  }
  for (const std::int32_t member : user_members) members[filled++] = member;
}

//! What a replay takes of a group.
constexpr rank_group joined_by(const group_info& info, std::span<const std::int32_t> members) {
  return {
      members.subspan(static_cast<std::size_t>(info.first), static_cast<std::size_t>(info.count)),
      info.stage};
}

}  // namespace stretto::lowering
