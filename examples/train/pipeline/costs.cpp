#include "pipeline/costs.hpp"

#include <cstdint>

#include "model/layer.hpp"
#include "model/program.hpp"

namespace train {

using stretto::job_kind;

namespace {

//! A table whose slices are classes, filled by set(slice, rank, chunk, entry of a kind).
template <class Set>
stretto::job_table by_slices(const stretto::shape& sizes, const stretto::placement& where,
                             Set&& set) {
  stretto::job_table table(where.ranks, where.chunks);
  for (int slice = 1; slice < sizes.slices; ++slice) table.add_class();
  if (sizes.slices > 1) {
    table.slices = sizes.slices;
    for (int microbatch = 0; microbatch < sizes.microbatches; ++microbatch)
      for (int slice = 0; slice < sizes.slices; ++slice) table.classes.push_back(slice);
  }
  for (int slice = 0; slice < sizes.slices; ++slice)
    for (int rank = 0; rank < where.ranks; ++rank)
      for (int chunk = 0; chunk < where.chunks; ++chunk)
        set(slice, rank, chunk, [&](job_kind kind) -> std::int64_t& {
          return table.at(slice, rank, chunk, kind).time;
        });
  return table;
}

}  // namespace

stretto::job_table product_costs(const config& model, const stretto::shape& sizes,
                                 const stretto::placement& where,
                                 std::span<const stretto::assignment::layer_range> layers) {
  return by_slices(sizes, where, [&](int slice, int rank, int chunk, auto&& time) {
    const auto& mine = layers[config::size(where.stage_of(rank, chunk))];
    product_counts sum;
    for (int layer = mine.first; layer < mine.first + mine.count; ++layer)
      sum += expected_products(model, layer, config::size(slice));
    const auto set = [&](job_kind kind, std::uint64_t products) {
      time(kind) = static_cast<std::int64_t>(products);
    };
    set(job_kind::forward, sum.forward);
    set(job_kind::backward, sum.backward_input + sum.backward_weight);
    set(job_kind::backward_input, sum.backward_input);
    set(job_kind::backward_weight, sum.backward_weight);
    set(job_kind::recompute, sum.forward);
  });
}

stretto::job_table machine_costs(const config& model, const stretto::shape& sizes,
                                 const stretto::placement& where,
                                 std::span<const stretto::assignment::layer_range> layers,
                                 const stretto::machine& on) {
  stretto::job_table table =
      by_slices(sizes, where, [&](int slice, int rank, int chunk, auto&& time) {
        const auto& mine = layers[config::size(where.stage_of(rank, chunk))];
        const stretto::program_chain chain =
            stage_chain(model, mine.first, mine.first + mine.count,
                        {.recompute = true, .split = true, .on = &on, .slice = slice});
        for (const stretto::program& job : chain.programs) {
          time(job.kind) = 0;
          for (const stretto::op& op : chain.ops_of(job)) time(job.kind) += op.time;
        }
        time(job_kind::backward) = time(job_kind::backward_input) + time(job_kind::backward_weight);
      });
  const std::size_t bytes = model.message_scalars() * sizeof(float);
  table.communication = on.time({.message = static_cast<std::int64_t>(bytes)});
  table.serial_links = true;  // a stream for each neighbour
  return table;
}

stretto::job_table measured_costs(std::span<const training_stage* const> ranks,
                                  const stretto::shape& sizes, const stretto::placement& where) {
  return by_slices(sizes, where, [&](int slice, int rank, int chunk, auto&& time) {
    const training_stage* const from = ranks[config::size(rank)];
    for (int kind = 0; kind < stretto::cost_kinds; ++kind) {
      const auto each = static_cast<job_kind>(kind);
      time(each) = from == nullptr ? 0 : from->clock().mean(chunk, each, slice);
    }
  });
}

}  // namespace train
