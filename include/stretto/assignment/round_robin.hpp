#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "stretto/assignment/concept.hpp"

namespace stretto::assignment {

//! Gives rank r per_rank[r] layers and deals them to its v chunks in turn: chunk c of rank r holds
//! ceil((per_rank[r] - c) / v) layers, which are consecutive in pipeline order. What Paddle's
//! automatic parallel does with uneven layers. Not for bidirectional placements, where a rank holds
//! stages of two replicas: a table or a list says what those are.
constexpr verdict deal_round_robin(std::span<const std::int32_t> per_rank, const placement& where,
                                   std::span<layer_range> stages) {
  const int count = where.stages();
  if (where.kind == placement_kind::bidirectional) return misassigned(reason::not_dealt_both_ways);
  if (per_rank.size() != static_cast<std::size_t>(where.ranks))
    return misassigned(reason::counts_not_per_rank, -1, static_cast<std::int64_t>(per_rank.size()),
                       where.ranks);
  if (stages.size() < static_cast<std::size_t>(count))
    return refuse(fault::capacity, reason::buffer_full);
  std::int32_t first = 0;
  for (int stage = 0; stage < count; ++stage) {
    const int rank = where.rank_of(stage, 0);
    const int chunk = where.chunk_of(stage, 0);
    int chunks = where.chunks;
    if (where.kind == placement_kind::table) {
      chunks = 0;
      while (where.stage_of(rank, chunks) >= 0) ++chunks;
    }
    const std::int32_t mine = per_rank[static_cast<std::size_t>(rank)];
    if (mine < chunks) return misassigned(reason::empty_stage, rank, mine, chunks);
    const std::int32_t held = mine / chunks + (chunk < mine % chunks ? 1 : 0);
    if (!take_layers(stages[static_cast<std::size_t>(stage)], held, first))
      return too_many_layers(std::int64_t{first} + held);
  }
  return {};
}

//! Layers per rank, dealt to the rank's chunks in turn.
template <int... LayersPerRank>
struct round_robin {
  static constexpr std::string_view name = "round_robin";
  static constexpr std::array<std::int32_t, sizeof...(LayersPerRank)> per_rank{LayersPerRank...};

  constexpr int layers() const { return (0 + ... + LayersPerRank); }
  constexpr verdict assign(const placement& where, std::span<layer_range> stages) const {
    return deal_round_robin(per_rank, where, stages);
  }
};

}  // namespace stretto::assignment
