// What a worker does in a forward-only step on held-back text, as the executor calls it.
#pragma once

#include <span>
#include <vector>

#include "model/corpus.hpp"
#include "pipeline/rank_model.hpp"
#include "stretto/executor/stage.hpp"

namespace train {

//! One worker's work in evaluation, on the stages that training updates.
class evaluation_stage final : public stretto::executor::stage {
 public:
  //! Everything is kept by reference. `microbatches`: of an evaluation, each of so many slices.
  evaluation_stage(rank_model& model, const corpus& text, int microbatches, int slices)
      : model_(model),
        text_(text),
        microbatches_(microbatches),
        slices_(slices),
        losses_(config::size(microbatches) * config::size(slices)) {}

  void run(const stretto::executor::context& at) override {
    if (model_.reads_batch(at))
      text_.held_back_batch(at.what.microbatch, model_.tokens(), model_.targets());
    const double loss = model_.run(at, 1.0 / microbatches_);
    // All shards find it, and the first alone tells.
    if (model_.finds_loss(at) && model_.shard() == 0)
      losses_[config::size(at.what.microbatch * slices_ + at.what.slice)] = loss;
  }
  bool serves(stretto::job_kind kind) const override { return kind == stretto::job_kind::forward; }

  //! Of every micro-batch (slice) of the last step its part of the mean loss, where this worker has
  //! found it, of its rank the first; otherwise 0.
  std::span<const double> losses() const { return losses_; }

 private:
  rank_model& model_;
  const corpus& text_;
  int microbatches_, slices_;
  std::vector<double> losses_;
};

}  // namespace train
