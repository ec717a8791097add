#include "pipeline/costs.hpp"

#include <cstdint>

#include "model/layer.hpp"
#include "model/program.hpp"

namespace train {

using stretto::job_kind;

stretto::job_table product_costs(const config& model, const stretto::placement& where,
                                 std::span<const stretto::assignment::layer_range> layers) {
  stretto::job_table table(where.ranks, where.chunks);
  for (int rank = 0; rank < where.ranks; ++rank)
    for (int chunk = 0; chunk < where.chunks; ++chunk) {
      const auto& mine = layers[config::size(where.stage_of(rank, chunk))];
      product_counts sum;
      for (int layer = mine.first; layer < mine.first + mine.count; ++layer) {
        const product_counts one = expected_products(model, layer);
        sum.forward += one.forward;
        sum.backward_input += one.backward_input;
        sum.backward_weight += one.backward_weight;
      }
      const auto set = [&](job_kind kind, std::uint64_t time) {
        table.at(rank, chunk, kind).time = static_cast<std::int64_t>(time);
      };
      set(job_kind::forward, sum.forward);
      set(job_kind::backward, sum.backward_input + sum.backward_weight);
      set(job_kind::backward_input, sum.backward_input);
      set(job_kind::backward_weight, sum.backward_weight);
      set(job_kind::recompute, sum.forward);
    }
  return table;
}

stretto::job_table machine_costs(const config& model, const stretto::placement& where,
                                 std::span<const stretto::assignment::layer_range> layers,
                                 const stretto::machine& on) {
  stretto::job_table table(where.ranks, where.chunks);
  for (int rank = 0; rank < where.ranks; ++rank)
    for (int chunk = 0; chunk < where.chunks; ++chunk) {
      const auto& mine = layers[config::size(where.stage_of(rank, chunk))];
      const stretto::program_chain chain =
          stage_chain(model, mine.first, mine.first + mine.count,
                      {.recompute = true, .split = true, .on = &on});
      for (const stretto::program& job : chain.programs) {
        std::int64_t& time = table.at(rank, chunk, job.kind).time;
        time = 0;
        for (const stretto::op& op : chain.ops_of(job)) time += op.time;
      }
      table.at(rank, chunk, job_kind::backward).time =
          table.at(rank, chunk, job_kind::backward_input).time +
          table.at(rank, chunk, job_kind::backward_weight).time;
    }
  const std::size_t bytes = model.message_scalars() * sizeof(float);
  table.communication = on.time({.message = static_cast<std::int64_t>(bytes)});
  return table;
}

stretto::job_table measured_costs(std::span<const training_stage* const> ranks,
                                  const stretto::placement& where) {
  stretto::job_table table(where.ranks, where.chunks);
  for (int rank = 0; rank < where.ranks; ++rank)
    for (int chunk = 0; chunk < where.chunks; ++chunk)
      for (int kind = 0; kind < stretto::cost_kinds; ++kind) {
        const auto each = static_cast<job_kind>(kind);
        const training_stage* const from = ranks[config::size(rank)];
        table.at(rank, chunk, each).time = from == nullptr ? 0 : from->clock().mean(chunk, each);
      }
  return table;
}

}  // namespace train
