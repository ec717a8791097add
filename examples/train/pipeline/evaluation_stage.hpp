// What a worker does in a forward-only step, on held-back text or to go on with a text, as the
// executor calls it.
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
      if (begun_.empty()) return text_.held_back_batch(microbatch, tokens, targets);
      for (const auto& each : {tokens, targets}) std::ranges::fill(each, std::uint8_t{0});
      std::ranges::copy(begun_, tokens.begin());
    };
  }

 public:
  //! Everything is kept by reference. `microbatches`: of an evaluation, each of so many slices.
  evaluation_stage(rank_model& model, const corpus& text, int microbatches, int slices)
      : model_(model),
        text_(text),
        microbatches_(microbatches),
        slices_(slices),
        losses_(model.by(), config::size(microbatches) * config::size(slices)),
        logits_(model.by(),
                model.has_piece() ? config::size(model.chunk(0).model().vocabulary) : 0) {}

  //! Before each step on held-back text.
  void prepare() { prepare({}, microbatches_); }
  //! Before each step that finds what may follow a text, no longer than the context: the first
  //! sequence of the first micro-batch, of which nothing behind it is read. All else stands still.
  //! @param text  kept until the step is over
  void prepare(std::span<const std::uint8_t> text) { prepare(text, 1); }

  void run(const stretto::executor::context& at) override {
    model_.by().on_stream(at.stream.native, at.sm_budget);
    if (at.step != step_) model_.begin_step();
    step_ = at.step;
    const std::size_t part = config::size(at.what.microbatch * slices_ + at.what.slice);
    if (!begun_.empty() && part > last_part()) return;
    if (model_.reads_batch(at)) model_.read_batch(at, batches());
    row_logits<float> asked;
    if (!begun_.empty() && part == last_part() && model_.makes_logits(at)) {
      asked = {begun_.size() - 1 - cut().begin(part), logits_.span().data()};
      found_ = true;
    }
    model_.run(at, 1.0 / microbatches_, &losses_.span()[part], asked);
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

  //! Whether this worker is one of those that tell what may follow the text of the last step.
  bool tells_logits() const { return found_ && model_.shard() == 0; }
  //! That, between steps: what its pieces of the head have found, and 0 of the rest.
  //! @param to  one for each byte of the vocabulary
  void read_logits(std::span<float> to) const {
    model_.by().get(logits_.span().data(), to.data(), to.size_bytes());
  }

 private:
  void prepare(std::span<const std::uint8_t> text, int microbatches) {
    begun_ = text;
    found_ = false;
    model_.prepare_batches(microbatches, batches());
  }
  sequence_cut cut() const { return model_.chunk(0).model().cut(); }
  //! The slice of the first micro-batch with the text's last byte.
  std::size_t last_part() const { return cut().slice_of(begun_.size() - 1); }

  rank_model& model_;
  const corpus& text_;
  int microbatches_, slices_;
  std::int64_t step_ = -1;
  std::span<const std::uint8_t> begun_;  // the text that is to go on; empty: evaluation
  bool found_ = false;
  math_array<double, float> losses_;
  math_array<float, float> logits_;
};

}  // namespace train
