// What a worker does in a forward-only step on held-back text, as the executor calls it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "model/corpus.hpp"
#include "model/math.hpp"
#include "pipeline/rank_model.hpp"
#include "stretto/executor/stage.hpp"

namespace train {

//! One worker's work in evaluation, on the stages that training updates.
class evaluation_stage final : public stretto::executor::stage {
  auto batches() const {
    return [this](int microbatch, auto tokens, auto targets) {
      text_.held_back_batch(microbatch, tokens, targets);
    };
  }

 public:
  //! Everything is kept by reference. `microbatches`: of an evaluation, each of so many slices.
  evaluation_stage(rank_model& model, const corpus& text, int microbatches, int slices)
      : model_(model),
        text_(text),
        microbatches_(microbatches),
        slices_(slices),
        losses_(model.by(), config::size(microbatches) * config::size(slices)) {}

  //! Before each step.
  void prepare() { model_.prepare_batches(microbatches_, batches()); }

  void run(const stretto::executor::context& at) override {
    model_.by().on_stream(at.stream.native, at.sm_budget);
    if (at.step != step_) model_.begin_step();
    step_ = at.step;
    if (model_.reads_batch(at)) model_.read_batch(at, batches());
    model_.run(at, 1.0 / microbatches_,
               &losses_.span()[config::size(at.what.microbatch * slices_ + at.what.slice)]);
  }
  bool serves(stretto::job_kind kind) const override { return kind == stretto::job_kind::forward; }

  //! Of every micro-batch (slice) of the last step its part of the mean loss, where this worker has
  //! found it; otherwise 0. All shards find it, and the first alone tells. Between steps.
  //! @param to  as many as there are
  void read_losses(std::span<double> to) const {
    if (model_.shard() == 0)
      model_.by().get(losses_.span().data(), to.data(), to.size_bytes());
    else
      std::ranges::fill(to, 0.0);
  }

 private:
  rank_model& model_;
  const corpus& text_;
  int microbatches_, slices_;
  std::int64_t step_ = -1;
  math_array<double, float> losses_;
};

}  // namespace train
