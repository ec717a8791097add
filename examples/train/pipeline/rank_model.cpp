#include "pipeline/rank_model.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace train {

using stretto::buffer_role;
using stretto::job_kind;

rank_model::rank_model(const config& model, const stretto::placement& where, int rank,
                       std::span<const stretto::assignment::layer_range> layers, std::uint64_t seed,
                       int shard, const math<float>& by, std::size_t reads)
    : where_(where), rank_(rank), by_(by), batch_(model), most_reads_(reads) {
  earlier_.reserve(config::size(model.slices));
  if (!by.on_host()) {
    staging_ = by.allocate_staging(reads * 2 * model.rows());
    in_device_ = by.allocate(2 * model.rows());
    const auto* const first = static_cast<const std::uint8_t*>(in_device_.get());
    tokens_ = {first, model.rows()};
    targets_ = {first + model.rows(), model.rows()};
  } else {
    tokens_ = batch_.tokens(0);
    targets_ = batch_.targets(0);
  }
  for (int chunk = 0; chunk < where.chunks; ++chunk) {
    const auto& mine = layers[config::size(where.stage_of(rank, chunk))];
    stages_.push_back(
        std::make_unique<stage>(model, mine.first, mine.first + mine.count, seed, shard, by));
    if (stages_.back()->has_embedding()) embedding_ = stages_.back().get();
    if (stages_.back()->has_head()) head_ = stages_.back().get();
  }
}

bool rank_model::reads_batch(const stretto::executor::context& at) const {
  const stage& here = stage_of(at.what.stage);
  if (at.what.kind != job_kind::forward && at.what.kind != job_kind::recompute) return false;
  if (at.op < 0) return here.has_embedding() || here.has_head();
  const op_code code = here.ops(at.what.kind)[config::size(at.op)].code;
  return code == op_code::embed || code == op_code::head;
}

bool rank_model::finds_loss(const stretto::executor::context& at) const {
  const stage& here = stage_of(at.what.stage);
  if (at.what.kind != job_kind::forward || !here.has_head()) return false;
  return at.op < 0 || here.ops(at.what.kind)[config::size(at.op)].code == op_code::head;
}

void rank_model::hand_over(std::size_t slice) {
  tokens_ = batch_.tokens(slice);
  targets_ = batch_.targets(slice);
  if (by_.on_host()) return;
  const std::size_t rows = tokens_.size();
  if (reads_ == most_reads_)
    throw std::logic_error("a step has more jobs that read the batch than the " +
                           std::to_string(most_reads_) + " foreseen");
  auto* const from = static_cast<std::uint8_t*>(staging_.get()) + 2 * rows * reads_++;
  auto* const to = static_cast<std::uint8_t*>(in_device_.get());
  std::ranges::copy(tokens_, from);
  std::ranges::copy(targets_, from + rows);
  by_.copy(from, to, 2 * rows);
  tokens_ = {to, rows};
  targets_ = {to + rows, rows};
}

void rank_model::run(const stretto::executor::context& at, double loss_scale, double* loss) {
  stage& here = stage_of(at.what.stage);
  const job_arguments<float> with{.tokens = tokens_,
                                  .targets = targets_,
                                  .input = at.view<float>(buffer_role::input),
                                  .output = at.view<float>(buffer_role::output),
                                  .output_gradient = at.view<float>(buffer_role::output_gradient),
                                  .input_gradient = at.view<float>(buffer_role::input_gradient),
                                  .stash = at.view<float>(buffer_role::stash),
                                  .sums = at.view<float>(buffer_role::workspace),
                                  .loss_scale = loss_scale,
                                  .loss = loss,
                                  .earlier = earlier(at),
                                  .slice = config::size(at.what.slice)};
  if (at.op >= 0)
    here.run_op(at.what.kind, config::size(at.op), with, {at.piece, at.pieces});
  else
    here.run_job(at.what.kind, with);
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
