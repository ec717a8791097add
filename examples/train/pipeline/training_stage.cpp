#include "pipeline/training_stage.hpp"

#include <vector>

namespace train {

using stretto::buffer_role;
using stretto::job_kind;

training_stage::training_stage(rank_model& model, const corpus& text,
                               const learning_settings& learning, int microbatches, int slices,
                               step_groups groups, replica_number replica)
    : model_(model),
      text_(text),
      learning_(learning),
      groups_(groups),
      microbatches_(microbatches),
      slices_(slices),
      replica_(replica),
      losses_(model.by(), config::size(microbatches) * config::size(slices)),
      prepared_(model.by().allocate_staging(sizeof(adamw_factors<float>))),
      factors_(model.by(), 1),
      result_(model.by(), 1),
      clock_(model.chunks(), slices) {
  written_.reserve(2 * config::size(model.chunks()));
}

bool training_stage::serves(job_kind kind) const {
  switch (kind) {
    case job_kind::forward:
    case job_kind::backward:
    case job_kind::backward_input:
    case job_kind::backward_weight:
    case job_kind::recompute:
    case job_kind::reduce_grad:
    case job_kind::optimizer:
      return true;
    default:
      return false;
  }
}

void training_stage::prepare(long number) {
  number_ = number;
  *static_cast<adamw_factors<float>*>(prepared_.get()) =
      adamw_factors<float>(learning_.rule, number, learning_.rate.at(number));
  model_.prepare_batches(microbatches_, batches());
}

void training_stage::run(const stretto::executor::context& at) {
  model_.by().on_stream(at.stream.native, at.sm_budget);
  if (at.step != step_) begin_step(at.step);
  switch (at.what.kind) {
    case job_kind::reduce_grad:
      if (at.what.microbatch >= groups_.summed) read_sums(at);
      if (at.what.microbatch < groups_.summed + groups_.replicated)
        write_sum(at);
      else if (at.what.microbatch == groups_.tied) {
        write_tied(at.view<float>(buffer_role::collective, groups_.tied));
      } else {
        join_tied(at);
        write_norms(at.view<double>(buffer_role::collective, groups_.norms));
      }
      break;
    case job_kind::optimizer:
      optimizer(at);
      break;
    default:
      clock_.measure(model_.chunk_of(at.what.stage), at.what.kind, at.what.slice,
                     at.op <= 0 && at.piece == 0, [&] { compute(at); });
  }
}

void training_stage::begin_step(std::int64_t step) {
  step_ = step;
  written_.clear();
  model_.begin_step();
  for (int chunk = 0; chunk < model_.chunks(); ++chunk) model_.chunk(chunk).zero_gradients();
}

void training_stage::compute(const stretto::executor::context& at) {
  if (model_.reads_batch(at)) model_.read_batch(at, batches());
  model_.run(at, 1.0 / (microbatches_ * replica_.count),
             &losses_.span()[config::size(at.what.microbatch * slices_ + at.what.slice)]);
}

// What the stage that `at` names has is one of several parts.
void training_stage::write_sum(const stretto::executor::context& at) {
  const auto sums = at.view<float>(buffer_role::collective, at.what.microbatch);
  copy(model_.stage_of(at.what.stage).gradients(), sums);
  written_.push_back({at.what.microbatch, at.what.stage});
}

// All parts go on with the sum. Those of data-parallel replicas come first, and are in turn parts
// where a stage lies on two ranks.
void training_stage::read_sums(const stretto::executor::context& at) {
  std::erase_if(written_, [&](const stage_sum& one) {
    const auto sums = at.view<float>(buffer_role::collective, one.group);
    if (!sums.empty()) copy(sums, model_.stage_of(one.stage).gradients());
    return !sums.empty();
  });
}

std::span<float> training_stage::tied_gradient(layer_kind side, int piece) {
  for (int chunk = 0; chunk < model_.chunks(); ++chunk)
    if (const auto here = model_.chunk(chunk).tied_gradient(side, piece); !here.empty())
      return here;
  return {};
}

//! Of a table in pieces.
std::span<float> training_stage::of_piece(std::span<float> sides, layer_kind side,
                                          int piece) const {
  const std::size_t half = sides.size() / 2;
  const std::size_t part = half / config::size(model_.chunk(0).model().head_pieces);
  return sides.subspan((side == layer_kind::head ? half : 0) + config::size(piece) * part, part);
}

// Of two ranks that have the same, that of the first direction.
void training_stage::write_tied(std::span<float> sides) {
  model_.by().zero(sides.data(), sides.size_bytes());
  for (int piece = 0; piece < model_.chunk(0).model().head_pieces; ++piece)
    for (const layer_kind side : {layer_kind::embedding, layer_kind::head})
      for (int chunk = 0; chunk < model_.chunks(); ++chunk) {
        const auto here = model_.chunk(chunk).tied_gradient(side, piece);
        if (!here.empty() && !model_.is_second_replica(chunk))
          copy(here, of_piece(sides, side, piece));
      }
}

// Sets the table's gradient on each side that the rank holds to the sum of both.
void training_stage::join_tied(const stretto::executor::context& at) {
  const config& model = model_.chunk(0).model();
  if (!model.tied) return;
  const std::span<float> sides =
      groups_.tied < 0 ? std::span<float>{} : at.view<float>(buffer_role::collective, groups_.tied);
  for (int piece = 0; piece < model.head_pieces; ++piece) {
    const auto from_embedding = tied_gradient(layer_kind::embedding, piece);
    const auto from_head = tied_gradient(layer_kind::head, piece);
    if (from_embedding.empty() && from_head.empty()) continue;
    if (groups_.tied < 0) {  // the rank has both
      model_.by().add(from_embedding, from_head, from_embedding);
      copy(from_embedding, from_head);
      continue;
    }
    for (int chunk = 0; chunk < model_.chunks(); ++chunk)
      model_.chunk(chunk).join_tied(of_piece(sides, layer_kind::embedding, piece),
                                    of_piece(sides, layer_kind::head, piece), piece);
  }
}

void training_stage::write_norms(std::span<double> slots) {
  const math<float>& by = model_.by();
  by.zero(slots.data(), slots.size_bytes());
  const std::span<const double> mine = losses_.span();
  const auto losses = slots.last(mine.size() * config::size(replica_.count));
  const auto norms = slots.first(slots.size() - losses.size());
  for (int chunk = 0; chunk < model_.chunks() && replica_.index == 0; ++chunk)
    if (!model_.is_second_replica(chunk)) model_.chunk(chunk).squared_norms(norms);
  if (model_.with_head() != nullptr && model_.shard() == 0)
    by.copy(mine.data(), &losses[config::size(replica_.index) * mine.size()], mine.size_bytes());
}

void training_stage::optimizer(const stretto::executor::context& at) {
  const std::span<const double> slots = at.view<double>(buffer_role::collective, groups_.norms);
  // In the order of the micro-batches, whatever the order of their forwards.
  const auto losses = slots.last(losses_.span().size() * config::size(replica_.count));
  step_result* const made = &result_.span()[0];
  model_.by().finish(slots.first(slots.size() - losses.size()), losses, learning_.norm_limit,
                     made);
  if (model_.by().on_host()) clip_factor(made->gradient_norm, learning_.norm_limit);  // refuses
  const std::span<adamw_factors<float>> factors = factors_.span();
  model_.by().copy(prepared_.get(), factors.data(), factors.size_bytes());
  for (int chunk = 0; chunk < model_.chunks(); ++chunk)
    model_.chunk(chunk).clip_and_update(factors.data(), &made->clip_factor);
}

step_result training_stage::result() const {
  step_result made;
  model_.by().get(result_.span().data(), &made, sizeof(made));
  clip_factor(made.gradient_norm, learning_.norm_limit);  // refuses what is not finite
  return made;
}

void training_stage::copy(std::span<const float> from, std::span<float> to) const {
  model_.by().copy(from.data(), to.data(), from.size_bytes());
}

}  // namespace train
