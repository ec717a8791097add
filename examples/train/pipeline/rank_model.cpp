#include "pipeline/rank_model.hpp"

namespace train {

using stretto::buffer_role;

rank_model::rank_model(const config& model, const stretto::placement& where, int rank,
                       std::span<const stretto::assignment::layer_range> layers, std::uint64_t seed)
    : where_(where), rank_(rank), tokens_(model.rows()), targets_(model.rows()) {
  for (int chunk = 0; chunk < where.chunks; ++chunk) {
    const auto& mine = layers[config::size(where.stage_of(rank, chunk))];
    stages_.push_back(std::make_unique<stage>(model, mine.first, mine.first + mine.count, seed));
    if (stages_.back()->has_embedding()) embedding_ = stages_.back().get();
    if (stages_.back()->has_head()) head_ = stages_.back().get();
  }
}

double rank_model::forward(const stretto::executor::context& at, double loss_scale) {
  return stage_of(at.what.stage).forward(tokens_, targets_, at.view<float>(buffer_role::input),
                                   at.view<float>(buffer_role::output),
                                   at.view<float>(buffer_role::stash), loss_scale);
}

}  // namespace train
