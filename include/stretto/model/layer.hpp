#pragma once

#include <concepts>
#include <cstdint>
#include <span>

#include "stretto/base/saturated.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"

namespace stretto {

//! The consecutive layers of one stage: first ... first + count - 1, numbered through the model.
struct layer_range {
  std::int32_t first = 0;
  std::int32_t count = 0;

  constexpr bool operator==(const layer_range&) const = default;
};

//! Says by number what a layer takes: what it adds to each job of its stage, and the memory of its
//! weights. Communication and hiding are not the layers'; they are not read.
template <class Costs>
concept layer_costs = requires(const Costs& costs, int layer) {
  { costs(layer) } -> std::same_as<unit_costs>;
};

//! What a stage of these layers takes; nothing without layers.
template <layer_costs Costs>
constexpr unit_costs sum_of_layers(const layer_range& held, const Costs& costs) {
  unit_costs sum{.forward = 0,
                 .backward_input = 0,
                 .backward_weight = 0,
                 .memory_forward = 0,
                 .memory_backward_weight = 0,
                 .memory_recompute = 0,
                 .offload = 0,
                 .memory_offload = 0};
  const auto add = [](std::int64_t& to, std::int64_t more) { to = saturated_sum(to, more); };
  const auto add_size = [](std::int64_t& to, std::int64_t more) {
    to = saturated_sum_of_sizes(to, more);
  };
  for (int layer = held.first; layer < held.first + held.count; ++layer) {
    const unit_costs one = costs(layer);
    add_size(sum.forward, one.forward);
    add_size(sum.backward_input, one.backward_input);
    add_size(sum.backward_weight, one.backward_weight);
    add(sum.whole_saves, one.whole_saves);
    add(sum.recompute_saves, one.recompute_saves);
    add(sum.memory_forward, one.memory_forward);
    add(sum.memory_backward_input, one.memory_backward_input);
    add(sum.memory_backward_weight, one.memory_backward_weight);
    add(sum.memory_recompute, one.memory_recompute);
    add_size(sum.offload, one.offload);
    add(sum.memory_offload, one.memory_offload);
    add_size(sum.reduce_grad, one.reduce_grad);
    add_size(sum.unshard, one.unshard);
    add_size(sum.memory_unshard, one.memory_unshard);
    add_size(sum.memory_weights, one.memory_weights);
  }
  return sum;
}

//! Writes the job table of dealt layers, for which schedules, simulations and proofs then need no
//! layers: one entry per rank, chunk and kind, and per rank the memory of the weights it holds.
//! @param stages   layers of every stage, in pipeline order
//! @param entries  those of a fixed_job_table
//! @param base     its, too: one entry per rank
template <layer_costs Costs>
constexpr void write_layer_costs(const placement& where, std::span<const layer_range> stages,
                                 const Costs& costs, std::span<job_cost> entries,
                                 std::span<std::int64_t> base) {
  for (int rank = 0; rank < where.ranks; ++rank) {
    std::int64_t weights = 0;
    for (int chunk = 0; chunk < where.chunks; ++chunk) {
      const int stage = where.stage_of(rank, chunk);
      const unit_costs sum = stage < 0
                                 ? sum_of_layers({}, costs)
                                 : sum_of_layers(stages[static_cast<std::size_t>(stage)], costs);
      if (chunk < where.chunks_one_way() || !where.is_midst(rank))
        weights = saturated_sum_of_sizes(weights, sum.memory_weights);
      const int first = (rank * where.chunks + chunk) * cost_kinds;
      for (int kind = 0; kind < cost_kinds; ++kind)
        entries[static_cast<std::size_t>(first + kind)] = sum.of(static_cast<job_kind>(kind));
    }
    base[static_cast<std::size_t>(rank)] = weights;
  }
}
//! The same into a table made for the placement's ranks and chunks.
template <layer_costs Costs>
constexpr void write_layer_costs(const placement& where, std::span<const layer_range> stages,
                                 const Costs& costs, job_table& table) {
  table.base.resize(static_cast<std::size_t>(where.ranks));
  write_layer_costs(where, stages, costs, table.entries, table.base);
}

}  // namespace stretto
