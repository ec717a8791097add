#include "pipeline/rank_model.hpp"

namespace train {

using stretto::buffer_role;

rank_model::rank_model(const config& model, const stretto::placement& where, int rank,
                       std::span<const stretto::assignment::layer_range> layers, std::uint64_t seed)
    : where_(where), rank_(rank), batch_(model) {
  earlier_.reserve(config::size(model.slices));
  for (int chunk = 0; chunk < where.chunks; ++chunk) {
    const auto& mine = layers[config::size(where.stage_of(rank, chunk))];
    stages_.push_back(std::make_unique<stage>(model, mine.first, mine.first + mine.count, seed));
    if (stages_.back()->has_embedding()) embedding_ = stages_.back().get();
    if (stages_.back()->has_head()) head_ = stages_.back().get();
  }
}

double rank_model::forward(const stretto::executor::context& at, double loss_scale) {
  const auto slice = config::size(at.what.slice);
  return stage_of(at.what.stage)
      .forward(batch_.tokens(slice), batch_.targets(slice), at.view<float>(buffer_role::input),
               at.view<float>(buffer_role::output), at.view<float>(buffer_role::stash), loss_scale,
               earlier(at));
}

// The plan gives a job its own stash first and then those of earlier slices, in order.
earlier_slices<float> rank_model::earlier(const stretto::executor::context& at) {
  earlier_.clear();
  for (const stretto::executor::bound_buffer& each : at.buffers)
    if (each.role == buffer_role::stash && each.slice < at.what.slice)
      earlier_.push_back(
          {reinterpret_cast<float*>(each.data.data()), each.data.size() / sizeof(float)});
  return earlier_;
}

}  // namespace train
