#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "stretto/assignment/round_robin.hpp"
#include "stretto/base/scratch.hpp"

namespace stretto::assignment {

//! Deals as many layers to each rank as a list of ranks, one a layer, says: round robin over its
//! chunks; where the placement is bidirectional the list is that of its first direction.
constexpr verdict deal_counts(std::span<const std::int32_t> ranks, const placement& where,
                              std::span<layer_range> stages) {
  scratch<std::int32_t> counts(where.ranks);
  for (std::size_t layer = 0; layer < ranks.size(); ++layer) {
    const std::int32_t rank = ranks[layer];
    if (rank < 0 || rank >= where.ranks)
      return misassigned(reason::no_such_rank, rank, static_cast<std::int64_t>(layer),
                         where.ranks - 1);
    ++counts[rank];
  }
  const std::span<const std::int32_t> dealt(counts.data(), static_cast<std::size_t>(where.ranks));
  placement ahead = where;
  if (where.kind == placement_kind::bidirectional)
    ahead = place(placement_kind::wave, {.ranks = where.ranks, .chunks = where.chunks_one_way()});
  return deal_round_robin(dealt, ahead, stages);
}

//! The first layer from `layer` on that the list puts on another rank than the stages do.
//! @return ok; fault::misassigned with that layer, the list's rank and the stage's
constexpr verdict first_misplaced(std::span<const std::int32_t> ranks, const placement& where,
                                  std::span<const layer_range> stages, int layer = 0) {
  for (int stage = 0; stage < where.stages(); ++stage) {
    const layer_range held = stages[static_cast<std::size_t>(stage)];
    const int rank = where.rank_of(stage, 0);
    for (; layer < held.first + held.count; ++layer)
      if (ranks[static_cast<std::size_t>(layer)] != rank)
        return misassigned(reason::layer_misplaced, ranks[static_cast<std::size_t>(layer)], layer,
                           rank);
  }
  return {};
}

//! Reads stages off a list that goes through the ranks as the pipeline does: each run of one rank
//! is a stage, or the neighbouring stages of that rank (the turn of a wave), which share it in
//! turn.
//! @return whether it does, every stage having a layer
constexpr bool read_stages(std::span<const std::int32_t> ranks, const placement& where,
                           std::span<layer_range> stages) {
  const auto layers = static_cast<std::int32_t>(ranks.size());
  std::int32_t layer = 0;
  for (int stage = 0; stage < where.stages();) {
    const int rank = where.rank_of(stage, 0);
    int together = 1;
    while (stage + together < where.stages() && where.rank_of(stage + together, 0) == rank)
      ++together;
    std::int32_t end = layer;
    while (end < layers && ranks[static_cast<std::size_t>(end)] == rank) ++end;
    const std::int32_t run = end - layer;
    if (run < together) return false;
    for (int part = 0; part < together; ++part) {
      const std::int32_t held = (run - part + together - 1) / together;
      stages[static_cast<std::size_t>(stage++)] = {layer, held};
      layer += held;
    }
  }
  return layer == layers;
}

//! Deals layers as a list of ranks, one a layer, says. A list that never goes back to a lower rank
//! says how many layers each rank gets, which are dealt to its chunks in turn, as Paddle's
//! automatic parallel does with the devices that a user's program names. A list that does is taken
//! as it is, if it goes through the ranks as the stages do; Paddle leaves layers on wrong devices
//! there. For any placement.
//! @return ok; fault::misassigned, for a list that is neither with the first layer that lies on
//!         another rank than when its counts are dealt (first_misplaced finds the others)
constexpr verdict deal_list(std::span<const std::int32_t> ranks, const placement& where,
                            std::span<layer_range> stages) {
  const verdict dealt = deal_counts(ranks, where, stages);
  if (dealt.why == reason::no_such_rank || dealt.what == fault::capacity) return dealt;
  bool rising = true;
  for (std::size_t layer = 1; layer < ranks.size(); ++layer)
    rising = rising && ranks[layer - 1] <= ranks[layer];
  if (rising || !dealt.ok()) return dealt;
  scratch<layer_range> as_is(where.stages());
  const std::span<layer_range> read(as_is.data(), static_cast<std::size_t>(where.stages()));
  if (!read_stages(ranks, where, read)) return first_misplaced(ranks, where, stages);
  for (std::size_t stage = 0; stage < read.size(); ++stage) stages[stage] = read[stage];
  return {};
}

//! The rank of every layer.
template <int... RankOfLayer>
struct rank_list {
  static constexpr std::string_view name = "rank_list";
  static constexpr std::array<std::int32_t, sizeof...(RankOfLayer)> ranks{RankOfLayer...};

  constexpr int layers() const { return static_cast<int>(sizeof...(RankOfLayer)); }
  constexpr verdict assign(const placement& where, std::span<layer_range> stages) const {
    return deal_list(ranks, where, stages);
  }
};

}  // namespace stretto::assignment
