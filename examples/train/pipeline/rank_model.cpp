#include "pipeline/rank_model.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace train {

using stretto::buffer_role;
using stretto::job_kind;

rank_model::rank_model(const config& model, const stretto::placement& where, int rank,
                       std::span<const stretto::assignment::layer_range> layers, std::uint64_t seed,
                       int shard, const math<float>& by, int microbatches, bool held)
    : where_(where),
      rank_(rank),
      by_(by),
      batch_(model),
      slices_(config::size(model.slices)),
      rows_(model.rows()),
      most_microbatches_(microbatches) {
  earlier_.reserve(config::size(model.slices));
  if (!by.on_host()) {
    staging_ = by.allocate_staging(config::size(microbatches) * slices_ * 2 * rows_);
    in_device_ = by.allocate(2 * rows_);
    tokens_ = static_cast<const std::uint8_t*>(in_device_.get());
    targets_ = tokens_ + rows_;
  } else {
    tokens_ = batch_.tokens(0).data();
    targets_ = batch_.targets(0).data();
  }
  for (int chunk = 0; chunk < where.chunks; ++chunk) {
    const auto& mine = layers[config::size(where.stage_of(rank, chunk))];
    stages_.push_back(
        std::make_unique<stage>(model, mine.first, mine.first + mine.count, seed, shard, by,
                                held));
    if (stages_.back()->has_embedding()) embedding_ = stages_.back().get();
    if (stages_.back()->has_head()) head_ = stages_.back().get();
    has_piece_ = has_piece_ || stages_.back()->has_piece();
  }
}

bool rank_model::reads_batch(const stretto::executor::context& at) const {
  const stage& here = stage_of(at.what.stage);
  if (at.what.kind != job_kind::forward && at.what.kind != job_kind::recompute) return false;
  if (at.op < 0) return here.has_embedding() || here.has_piece();
  const op_code code = here.ops(at.what.kind)[config::size(at.op)].code;
  return code == op_code::embed || code == op_code::head;
}

bool rank_model::makes_logits(const stretto::executor::context& at) const {
  const stage& here = stage_of(at.what.stage);
  if (at.what.kind != job_kind::forward || !here.has_piece()) return false;
  return at.op < 0 || here.ops(at.what.kind)[config::size(at.op)].code == op_code::head;
}

std::span<std::uint8_t> rank_model::aside(int microbatch, std::size_t slice) const {
  if (microbatch >= most_microbatches_)
    throw std::logic_error("micro-batch " + std::to_string(microbatch) + " of at most " +
                           std::to_string(most_microbatches_));
  return {static_cast<std::uint8_t*>(staging_.get()) +
              (config::size(microbatch) * slices_ + slice) * 2 * rows_,
          2 * rows_};
}

void rank_model::set_aside(int microbatch) {
  for (std::size_t slice = 0; slice < slices_; ++slice) {
    const std::span<std::uint8_t> to = aside(microbatch, slice);
    std::ranges::copy(batch_.tokens(slice), to.begin());
    std::ranges::copy(batch_.targets(slice), to.last(rows_).begin());
  }
}

void rank_model::hand_over(int microbatch, std::size_t slice) {
  if (by_.on_host()) {
    tokens_ = batch_.tokens(slice).data();
    targets_ = batch_.targets(slice).data();
    return;
  }
  const std::span<const std::uint8_t> from = aside(microbatch, slice);
  by_.copy(from.data(), in_device_.get(), from.size());
}

void rank_model::run(const stretto::executor::context& at, double loss_scale, double* loss,
                     row_logits<float> logits) {
  stage& here = stage_of(at.what.stage);
  const std::size_t rows = here.model().rows(config::size(at.what.slice));
  const job_arguments<float> with{.tokens = {tokens_, rows},
                                  .targets = {targets_, rows},
                                  .input = at.view<float>(buffer_role::input),
                                  .output = at.view<float>(buffer_role::output),
                                  .output_gradient = at.view<float>(buffer_role::output_gradient),
                                  .input_gradient = at.view<float>(buffer_role::input_gradient),
                                  .stash = at.view<float>(buffer_role::stash),
                                  .sums = at.view<float>(buffer_role::workspace),
                                  .loss_scale = loss_scale,
                                  .loss = loss,
                                  .logits = logits,
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
