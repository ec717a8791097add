#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/model/placement.hpp"
#include "stretto/model/program.hpp"
#include "stretto/model/transformer.hpp"

namespace stretto {

//! Writes the programs of one rank of a transformer. What is kept for the backward is what Megatron
//! keeps (Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models",
//! section 4): for a layer, bytes of 34 s b h + 5 a s^2 b in half precision.
class transformer_writer {
 public:
  constexpr transformer_writer(const transformer& model, program_chain& out)
      : model_(model), out_(out) {
    const std::int64_t rows = model.tokens();
    const std::int64_t wide = model.tensor_parallel;
    const std::int64_t whole = model.sequence_parallel ? wide : 1;
    row_ = rows * model.hidden * model.bytes.activation / whole;
    full_row_ = rows * model.hidden * model.bytes.activation;
    row_mask_ = rows * model.hidden / whole;
    share_ = rows * model.hidden * model.bytes.activation / wide;
    scores_ = model.heads * model.sequence * rows * model.bytes.activation / wide;
    score_mask_ = model.heads * model.sequence * rows / wide;
    logits_ = rows * model.vocabulary * 4 / wide;  // in single precision for the loss
  }

  //! The bytes of activations between stages.
  constexpr std::int64_t message_bytes() const { return row_; }

  constexpr void embed() {
    input_ = out_.buffer("embedded", row_);
    embed_mask_ = out_.buffer("embedding mask", row_mask_);
    out_.add("embed", {writes(input_)});
    out_.add("embedding dropout", {reads(input_), writes(input_), writes(embed_mask_)});
  }
  constexpr void receive() {
    input_ = out_.buffer("input", row_);
    out_.add("receive", {writes(input_)});
  }
  constexpr void send() { out_.add("send", {reads(input_)}); }

  constexpr void layer_forward() {
    layer one;
    one.input = input_;
    one.norm = out_.buffer("attention norm", row_);
    one.q = out_.buffer("queries", share_);
    one.k = out_.buffer("keys", share_);
    one.v = out_.buffer("values", share_);
    one.scores = out_.buffer("scores", scores_);
    one.weights = out_.view("softmax", one.scores);
    one.mask = out_.buffer("attention mask", score_mask_);
    one.dropped = out_.buffer("dropped softmax", scores_);
    one.context = out_.buffer("context", share_);
    const std::int32_t attended = out_.buffer("attended", row_);
    one.attended_mask = out_.buffer("attended mask", row_mask_);
    one.middle = out_.buffer("middle", row_);
    one.wide_norm = out_.buffer("feed-forward norm", row_);
    one.wide = out_.buffer("wide", 4 * share_);
    one.active = out_.buffer("active", 4 * share_);
    const std::int32_t narrow = out_.buffer("narrow", row_);
    one.narrow_mask = out_.buffer("narrow mask", row_mask_);
    const std::int32_t output = out_.buffer("output", row_);

    out_.add("norm", {reads(input_), writes(one.norm)});
    const std::int32_t norm = gathered(one.norm);
    out_.add("qkv", {reads(norm), writes(one.q), writes(one.k), writes(one.v)});
    out_.add("scores", {reads(one.q), reads(one.k), writes(one.scores)});
    out_.add("softmax", {reads(one.scores), writes(one.weights)});
    out_.add("attention dropout", {reads(one.weights), writes(one.dropped), writes(one.mask)});
    out_.add("context", {reads(one.dropped), reads(one.v), writes(one.context)});
    out_.add("projection", {reads(one.context), writes(attended)});
    out_.add("residual",
             {reads(attended), reads(input_), writes(one.attended_mask), writes(one.middle)});
    out_.add("norm", {reads(one.middle), writes(one.wide_norm)});
    const std::int32_t wide_norm = gathered(one.wide_norm);
    out_.add("widen", {reads(wide_norm), writes(one.wide)});
    out_.add("gelu", {reads(one.wide), writes(one.active)});
    out_.add("narrow", {reads(one.active), writes(narrow)});
    out_.add("residual",
             {reads(narrow), reads(one.middle), writes(one.narrow_mask), writes(output)});
    input_ = output;
    layers_.push_back(one);
  }

  constexpr void head_forward() {
    head_input_ = input_;
    head_norm_ = out_.buffer("head norm", row_);
    logits_buffer_ = out_.buffer("logits", logits_);
    out_.add("norm", {reads(input_), writes(head_norm_)});
    const std::int32_t norm = gathered(head_norm_);
    out_.add("logits", {reads(norm), writes(logits_buffer_)});
    // The loss turns the logits into their gradient, in place.
    out_.add("loss", {reads(logits_buffer_), writes(logits_buffer_)});
  }

  constexpr void receive_gradient() {
    gradient_ = out_.buffer("output gradient", row_);
    out_.add("receive", {writes(gradient_)});
  }
  constexpr void send_gradient() { out_.add("send", {reads(gradient_)}); }

  constexpr void head_backward_input() {
    gradient_ = out_.buffer("head gradient", row_);
    out_.add("logits back", {reads(logits_buffer_), writes(gradient_)});
    out_.add("norm back", {reads(head_input_), reads(gradient_), writes(gradient_)});
  }
  constexpr void head_backward_weight() {
    const std::int32_t norm = gathered(head_norm_);
    out_.add("logits weights", {reads(norm), reads(logits_buffer_)});
  }
  constexpr void embed_backward_input() {
    out_.add("embedding dropout back", {reads(embed_mask_), reads(gradient_), writes(gradient_)});
    embed_gradient_ = gradient_;
  }
  constexpr void embed_backward_weight() { out_.add("embed weights", {reads(embed_gradient_)}); }

  //! The gradient of a layer's input in place of that of its output.
  constexpr void layer_backward_input(int at, bool weights_too) {
    layer& one = layers_[static_cast<std::size_t>(at)];
    one.d_narrow = out_.buffer("narrow gradient", row_);
    one.d_wide = out_.buffer("wide gradient", 4 * share_);
    const std::int32_t d_wide_norm = out_.buffer("feed-forward norm gradient", row_);
    one.d_attended = out_.buffer("attended gradient", row_);
    const std::int32_t d_context = out_.buffer("context gradient", share_);
    const std::int32_t d_scores = out_.buffer("scores gradient", scores_);
    one.d_q = out_.buffer("queries gradient", share_);
    one.d_k = out_.buffer("keys gradient", share_);
    one.d_v = out_.buffer("values gradient", share_);
    const std::int32_t d_norm = out_.buffer("attention norm gradient", row_);

    out_.add("residual back", {reads(gradient_), reads(one.narrow_mask), writes(one.d_narrow)});
    const std::int32_t d_narrow = gathered(one.d_narrow);
    out_.add("narrow back", {reads(d_narrow), writes(one.d_wide)});
    if (weights_too) narrow_weights(one);
    out_.add("gelu back", {reads(one.wide), reads(one.d_wide), writes(one.d_wide)});
    out_.add("widen back", {reads(one.d_wide), writes(d_wide_norm)});
    if (weights_too) widen_weights(one);
    out_.add("norm back",
             {reads(one.middle), reads(d_wide_norm), reads(gradient_), writes(gradient_)});
    out_.add("residual back", {reads(gradient_), reads(one.attended_mask), writes(one.d_attended)});
    const std::int32_t d_attended = gathered(one.d_attended);
    out_.add("projection back", {reads(d_attended), writes(d_context)});
    if (weights_too) projection_weights(one);
    out_.add("context back", {reads(d_context), reads(one.dropped), reads(one.v), writes(d_scores),
                              writes(one.d_v)});
    out_.add("attention dropout back", {reads(one.mask), reads(d_scores), writes(d_scores)});
    out_.add("softmax back", {reads(one.weights), reads(d_scores), writes(d_scores)});
    out_.add("scores back",
             {reads(d_scores), reads(one.q), reads(one.k), writes(one.d_q), writes(one.d_k)});
    out_.add("qkv back", {reads(one.d_q), reads(one.d_k), reads(one.d_v), writes(d_norm)});
    if (weights_too) qkv_weights(one);
    out_.add("norm back", {reads(one.input), reads(d_norm), reads(gradient_), writes(gradient_)});
  }
  constexpr void layer_backward_weight(int at) {
    const layer& one = layers_[static_cast<std::size_t>(at)];
    narrow_weights(one);
    widen_weights(one);
    projection_weights(one);
    qkv_weights(one);
  }
  constexpr int layers() const { return static_cast<int>(layers_.size()); }

 private:
  struct layer {
    std::int32_t input, norm, q, k, v, scores, weights, mask, dropped, context, attended_mask;
    std::int32_t middle, wide_norm, wide, active, narrow_mask;
    std::int32_t d_narrow, d_wide, d_attended, d_q, d_k, d_v;
  };

  //! All rows of a buffer that sequence parallelism splits, for the time of a product.
  constexpr std::int32_t gathered(std::int32_t part) {
    if (!model_.sequence_parallel || model_.tensor_parallel == 1) return part;
    const std::int32_t all = out_.buffer("gathered", full_row_);
    out_.add("gather", {reads(part), writes(all)});
    return all;
  }
  constexpr void narrow_weights(const layer& one) {
    const std::int32_t gradient = gathered(one.d_narrow);
    out_.add("narrow weights", {reads(one.active), reads(gradient)});
  }
  constexpr void widen_weights(const layer& one) {
    const std::int32_t norm = gathered(one.wide_norm);
    out_.add("widen weights", {reads(norm), reads(one.d_wide)});
  }
  constexpr void projection_weights(const layer& one) {
    const std::int32_t gradient = gathered(one.d_attended);
    out_.add("projection weights", {reads(one.context), reads(gradient)});
  }
  constexpr void qkv_weights(const layer& one) {
    const std::int32_t norm = gathered(one.norm);
    out_.add("qkv weights", {reads(norm), reads(one.d_q), reads(one.d_k), reads(one.d_v)});
  }

  transformer model_;
  program_chain& out_;
  std::int64_t row_ = 0, full_row_ = 0, row_mask_ = 0, share_ = 0, scores_ = 0, score_mask_ = 0,
               logits_ = 0;
  std::int32_t input_ = -1, gradient_ = -1, embed_mask_ = -1, embed_gradient_ = -1;
  std::int32_t head_input_ = -1, head_norm_ = -1, logits_buffer_ = -1;
  std::vector<layer> layers_;
};

//! The chain of a rank: for each of its chunks the forward, then from the last chunk on the
//! backwards, whole or split. Where the next stage is on the same rank nothing is sent.
//! @param layers  of each stage
constexpr program_chain transformer_chain(const transformer& model, const placement& where,
                                          int rank, std::span<const std::int32_t> layers,
                                          bool split) {
  program_chain made;
  transformer_writer write(model, made);
  const int stages = where.stages();
  const auto here = [&](int stage) {
    // Two-way, a rank's chunks serve different micro-batches.
    return where.kind != placement_kind::bidirectional && stage >= 0 && stage < stages &&
           where.rank_of(stage, 0) == rank;
  };
  std::vector<int> first(static_cast<std::size_t>(where.chunks));
  for (int chunk = 0; chunk < where.chunks; ++chunk) {
    const int stage = where.stage_of(rank, chunk);
    made.begin(job_kind::forward, chunk);
    if (stage == 0)
      write.embed();
    else if (!here(stage - 1))
      write.receive();
    first[static_cast<std::size_t>(chunk)] = write.layers();
    for (int at = 0; at < layers[static_cast<std::size_t>(stage)]; ++at) write.layer_forward();
    if (stage + 1 == stages)
      write.head_forward();
    else if (!here(stage + 1))
      write.send();
  }
  for (int chunk = where.chunks - 1; chunk >= 0; --chunk) {
    const int stage = where.stage_of(rank, chunk);
    const int from = first[static_cast<std::size_t>(chunk)];
    const int to = from + layers[static_cast<std::size_t>(stage)];
    made.begin(split ? job_kind::backward_input : job_kind::backward, chunk);
    if (stage + 1 == stages) {
      write.head_backward_input();
      if (!split) write.head_backward_weight();
    } else if (!here(stage + 1)) {
      write.receive_gradient();
    }
    for (int at = to - 1; at >= from; --at) write.layer_backward_input(at, !split);
    if (stage == 0) {
      write.embed_backward_input();
      if (!split) write.embed_backward_weight();
    } else if (!here(stage - 1)) {
      write.send_gradient();
    }
    if (!split) continue;
    made.begin(job_kind::backward_weight, chunk);
    if (stage + 1 == stages) write.head_backward_weight();
    for (int at = to - 1; at >= from; --at) write.layer_backward_weight(at);
    if (stage == 0) write.embed_backward_weight();
  }
  return made;
}

}  // namespace stretto
