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
//! are used. The middle rank of an odd number has both directions of its stages.
constexpr int replicated_stages(const placement& where) {
  return where.kind == placement_kind::bidirectional ? where.ranks / 2 * 2 * where.chunks_one_way()
                                                     : 0;
}

//! How many stages' gradients lie on a rank, and so how many sums over data-parallel replicas. The
//! middle rank of an odd number has its stages in both directions.
constexpr int summed_stages(const placement& where, int rank) {
  if (where.is_midst(rank)) return where.chunks_one_way();
  int stages = where.chunks;
  while (stages > 0 && where.stage_of(rank, stages - 1) < 0) --stages;  // a table may name fewer
  return stages;
}
constexpr int summed_stages(const placement& where) {
  int sum = 0;
  for (int rank = 0; rank < where.ranks; ++rank) sum += summed_stages(where, rank);
  return sum;
}

//! The collectives of a training step. First, with `data_parallel`, those that sum each stage's
//! gradients over the data-parallel replicas of its rank, rank by rank; then those that sum both
//! replicas of a stage, one a stage, in the order of the stages; then the user's, whose numbers
//! count on from there.
//! @param gathers  the former gather the stage's weights, too
//! @param bytes_of a stage's stage_bytes
//! @param infos    room for summed_stages(), `replicated` and the user's, which refer to
//!                 `user_members`
//! @param members  room for one, two and all of these
template <class BytesOf>
constexpr void write_groups(const placement& where, bool data_parallel, bool gathers,
                            int replicated, const BytesOf& bytes_of,
                            std::span<const group_info> user_infos,
                            std::span<const std::int32_t> user_members, group_info* infos,
                            std::int32_t* members) {
  std::int32_t filled = 0;
  for (std::int32_t rank = 0; data_parallel && rank < where.ranks; ++rank)
    for (int chunk = 0; chunk < summed_stages(where, rank); ++chunk) {
      const std::int32_t stage = where.stage_of(rank, chunk);
      *infos++ = {filled, 1,    bytes_of(stage).gradients / 4,         false, stage,
                  false,  true, gathers ? bytes_of(stage).weights : -1};
      members[filled++] = rank;
    }
  for (std::int32_t stage = 0; replicated > 0 && stage < where.stages(); ++stage) {
    const std::int32_t one = where.rank_in(0, stage);
    const std::int32_t other = where.rank_in(1, stage);
    if (other == one) continue;
    *infos++ = {filled, 2, bytes_of(stage).gradients / 4, false, stage};
    members[filled++] = one < other ? one : other;
    members[filled++] = one < other ? other : one;
  }
  for (group_info info : user_infos) {
    info.first += filled;
    *infos++ = info;
  }
  for (const std::int32_t member : user_members) members[filled++] = member;
}

//! What a replay takes of a group.
//! @param train  an optimizer ends the step
constexpr rank_group joined_by(const group_info& info, std::span<const std::int32_t> members,
                               bool train) {
  return {
      members.subspan(static_cast<std::size_t>(info.first), static_cast<std::size_t>(info.count)),
      info.stage, info.data_parallel, info.weights >= 0, train};
}

}  // namespace stretto::lowering
