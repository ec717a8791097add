#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "stretto/assignment/concept.hpp"

namespace stretto::assignment {

//! Gives stage s per_stage[s] layers, in pipeline order. For any placement; the two replicas of a
//! bidirectional one share the stages.
//! @param may_be_empty whether a stage may have none
constexpr verdict deal_table(std::span<const std::int32_t> per_stage, const placement& where,
                             std::span<layer_range> stages, bool may_be_empty = false) {
  const int count = where.stages();
  if (per_stage.size() != static_cast<std::size_t>(count))
    return misassigned(reason::counts_not_per_stage, -1,
                       static_cast<std::int64_t>(per_stage.size()), count);
  if (stages.size() < per_stage.size()) return refuse(fault::capacity, reason::buffer_full);
  std::int32_t first = 0;
  int stage = 0;
  for (const std::int32_t held : per_stage) {
    if (held < (may_be_empty ? 0 : 1))
      return misassigned(reason::empty_stage, where.rank_of(stage, 0), held, may_be_empty ? 0 : 1);
    if (!take_layers(stages[static_cast<std::size_t>(stage++)], held, first))
      return too_many_layers(std::int64_t{first} + held);
  }
  return {};
}

//! Layers per stage, in pipeline order.
template <int... LayersPerStage>
struct table {
  static constexpr std::string_view name = "table";
  static constexpr std::array<std::int32_t, sizeof...(LayersPerStage)> per_stage{LayersPerStage...};

  constexpr int layers() const { return (0 + ... + LayersPerStage); }
  constexpr verdict assign(const placement& where, std::span<layer_range> stages) const {
    return deal_table(per_stage, where, stages);
  }
};

//! The same where a 0 leaves the stage empty: it passes on what it receives.
template <int... LayersPerStage>
struct sparse_table : table<LayersPerStage...> {
  static constexpr std::string_view name = "sparse_table";
  static constexpr bool leaves_empty = true;

  constexpr verdict assign(const placement& where, std::span<layer_range> stages) const {
    return deal_table(table<LayersPerStage...>::per_stage, where, stages, true);
  }
};

}  // namespace stretto::assignment
