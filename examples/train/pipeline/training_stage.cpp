#include "pipeline/training_stage.hpp"

#include <algorithm>
#include <numeric>

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
      losses_(config::size(microbatches) * config::size(slices)),
      clock_(model.chunks()) {
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

void training_stage::run(const stretto::executor::context& at) {
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
      clock_.measure(model_.chunk_of(at.what.stage), at.what.kind, at.op <= 0,
                     [&] { compute(at); });
  }
}

void training_stage::begin_step(std::int64_t step) {
  step_ = step;
  written_.clear();
  for (int chunk = 0; chunk < model_.chunks(); ++chunk) model_.chunk(chunk).zero_gradients();
}

void training_stage::compute(const stretto::executor::context& at) {
  if (model_.reads_batch(at))
    text_.batch(learning_.seed, number(at), replica_.index * microbatches_ + at.what.microbatch,
                model_.tokens(), model_.targets());
  const double loss = model_.run(at, 1.0 / (microbatches_ * replica_.count));
  if (model_.finds_loss(at))
    losses_[config::size(at.what.microbatch * slices_ + at.what.slice)] = loss;
}

// What the stage that `at` names has is one of several parts.
void training_stage::write_sum(const stretto::executor::context& at) {
  const auto sums = at.view<float>(buffer_role::collective, at.what.microbatch);
  std::ranges::copy(model_.stage_of(at.what.stage).gradients(), sums.begin());
  written_.push_back({at.what.microbatch, at.what.stage});
}

// All parts go on with the sum. Those of data-parallel replicas come first, and are in turn parts
// where a stage lies on two ranks.
void training_stage::read_sums(const stretto::executor::context& at) {
  std::erase_if(written_, [&](const stage_sum& one) {
    const auto sums = at.view<float>(buffer_role::collective, one.group);
    if (!sums.empty()) std::ranges::copy(sums, model_.stage_of(one.stage).gradients().begin());
    return !sums.empty();
  });
}

void training_stage::write_tied(std::span<float> sides) {
  const auto put = [](std::span<const float> gradient, std::span<float> slot) {
    if (gradient.empty())
      std::ranges::fill(slot, 0.0f);
    else
      std::ranges::copy(gradient, slot.begin());
  };
  const std::size_t table = sides.size() / 2;
  train::stage* const first = model_.with_embedding();
  train::stage* const last = model_.with_head();
  put(first ? first->tied_gradient(layer_kind::embedding) : std::span<float>{}, sides.first(table));
  put(last ? last->tied_gradient(layer_kind::head) : std::span<float>{}, sides.last(table));
}

// Sets the table's gradient on each side that the rank holds to the sum of both.
void training_stage::join_tied(const stretto::executor::context& at) {
  train::stage* const first = model_.with_embedding();
  train::stage* const last = model_.with_head();
  if (!model_.chunk(0).model().tied) return;
  if (first != nullptr && last != nullptr) {
    const auto from_embedding = first->tied_gradient(layer_kind::embedding);
    const auto from_head = last->tied_gradient(layer_kind::head);
    first->join_tied(from_embedding, from_head);
    if (first != last) std::ranges::copy(from_embedding, from_head.begin());
  } else if (train::stage* const here = first != nullptr ? first : last) {
    const std::span<const float> sides = at.view<float>(buffer_role::collective, groups_.tied);
    here->join_tied(sides.first(sides.size() / 2), sides.last(sides.size() / 2));
  }
}

void training_stage::write_norms(std::span<double> slots) {
  std::ranges::fill(slots, 0.0);
  const auto losses = slots.last(losses_.size() * config::size(replica_.count));
  const auto norms = slots.first(slots.size() - losses.size());
  for (int chunk = 0; chunk < model_.chunks() && replica_.index == 0; ++chunk)
    if (!model_.is_second_replica(chunk)) model_.chunk(chunk).squared_norms(norms);
  if (model_.with_head() != nullptr && model_.shard() == 0)
    std::ranges::copy(losses_, losses.subspan(config::size(replica_.index) * losses_.size()).begin());
}

void training_stage::optimizer(const stretto::executor::context& at) {
  const std::span<const double> slots = at.view<double>(buffer_role::collective, groups_.norms);
  // In the order of the micro-batches, whatever the order of their forwards.
  const auto losses = slots.last(losses_.size() * config::size(replica_.count));
  result_.loss = std::accumulate(losses.begin(), losses.end(), 0.0);
  result_.gradient_norm = global_norm(slots.first(slots.size() - losses.size()));
  result_.clip_factor = clip_factor(result_.gradient_norm, learning_.norm_limit);
  for (int chunk = 0; chunk < model_.chunks(); ++chunk)
    model_.chunk(chunk).clip_and_update(learning_.rule, number(at), learning_.rate.at(number(at)),
                                        &result_.clip_factor);
}

}  // namespace train
