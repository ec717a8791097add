// The unpipelined trainer: one stage with all layers. What the pipelined one must equal, bit for
// bit.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/config.hpp"
#include "model/optimizer.hpp"
#include "model/stage.hpp"
#include "model/tensor.hpp"

namespace train {

//! What a training step reports.
struct step_result {
  double loss = 0;           //!< mean cross-entropy of the step's micro-batches, nats per byte
  double gradient_norm = 0;  //!< before clipping
  double clip_factor = 1;

  bool operator==(const step_result&) const = default;
};

//! Trains on micro-batches in ascending order with the same layer functions as the pipeline.
//! `fill(microbatch, tokens, targets)` writes one micro-batch of data into the two spans.
template <class Scalar>
class basic_reference {
 public:
  basic_reference(const config& model, std::uint64_t seed)
      : stage_(model, 0, model.layer_count(), seed),
        stash_(stage_.stash_scalars()),
        tokens_(model.rows()),
        targets_(model.rows()),
        norms_(config::size(model.layer_count())) {}

  //! One step: forward and backward of each micro-batch, clipping, AdamW. The gradients stay (not
  //! clipped, tied ones joined) until the next step.
  //! @throws std::invalid_argument if there are no micro-batches
  //! @throws std::runtime_error if the gradient is not finite; parameters are then untouched
  template <class Fill>
  step_result step(long number, int microbatches, double learning_rate, double norm_limit,
                   const adamw& rule, Fill&& fill) {
    step_result result;
    stage_.zero_gradients();
    result.loss = each(microbatches, fill, [&] { stage_.backward({}, {}, stash_.span()); });
    if (stage_.model().tied) {
      stage_.join_tied(stage_.tied_gradient(layer_kind::embedding),
                       stage_.tied_gradient(layer_kind::head));
    }
    stage_.squared_norms(norms_);
    result.gradient_norm = global_norm(norms_);
    result.clip_factor = clip_factor(result.gradient_norm, norm_limit);
    stage_.clip_and_update(rule, number, learning_rate, result.clip_factor);
    return result;
  }

  //! The loss alone, over `microbatches` micro-batches.
  template <class Fill>
  double evaluate(int microbatches, Fill&& fill) {
    return each(microbatches, fill, [] {});
  }

  basic_stage<Scalar>& stage() { return stage_; }
  const basic_stage<Scalar>& stage() const { return stage_; }

 private:
  template <class Fill, class After>
  double each(int microbatches, Fill& fill, After&& after) {
    if (microbatches < 1) {
      throw std::invalid_argument("microbatches is " + std::to_string(microbatches) +
                                  ", it must be at least 1");
    }
    double loss = 0;
    for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
      fill(microbatch, std::span<std::uint8_t>(tokens_), std::span<std::uint8_t>(targets_));
      loss += stage_.forward(tokens_, targets_, {}, {}, stash_.span(), 1.0 / microbatches);
      after();
    }
    return loss;
  }

  basic_stage<Scalar> stage_;
  aligned_array<Scalar> stash_;
  std::vector<std::uint8_t> tokens_, targets_;
  std::vector<double> norms_;
};

using reference = basic_reference<float>;

}  // namespace train
