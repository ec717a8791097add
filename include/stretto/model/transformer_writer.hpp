#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "stretto/base/viewed.hpp"
#include "stretto/model/machine.hpp"
#include "stretto/model/program.hpp"
#include "stretto/model/stream_type.hpp"
#include "stretto/model/transformer.hpp"

namespace stretto {

//! Writes the programs of one rank of a transformer. What is kept for the backward is what Megatron
//! keeps (Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models",
//! section 4): for a layer, bytes of 34 s b h + 5 a s^2 b in half precision. Where ranks share the
//! layers, a row-split product is followed by the sum of its parts, forwards, and a column-split
//! one backwards, on the stream for that; nothing is copied besides.
class transformer_writer {
 public:
  //! @param on  what ops take there, by its roofline; a machine without a name: they have no times
  constexpr transformer_writer(const transformer& model, program_chain& out,
                               const machine& on = {})
      : model_(model), out_(out), on_(on), t_(model.tensor_parallel) {
    rows_ = model.tokens();
    const std::int64_t whole = model.sequence_parallel ? t_ : 1;
    full_row_ = rows_ * model.hidden * model.bytes.activation;
    row_ = full_row_ / whole;
    row_mask_ = rows_ * model.hidden / whole;
    share_ = full_row_ / t_;
    scores_ = model.heads * model.sequence * rows_ * model.bytes.activation / t_;
    score_mask_ = model.heads * model.sequence * rows_ / t_;
    logits_ = rows_ * model.vocabulary * 4 / t_;  // in single precision for the loss
  }

  //! The bytes of activations between stages.
  constexpr std::int64_t message_bytes() const { return row_; }

  constexpr void embed() {
    input_ = out_.buffer("embedded", row_);
    embed_mask_ = out_.buffer("embedding mask", row_mask_);
    product("embed", "embedding", {}, input_, {0, 2 * full_row_});
    add("embedding dropout", {reads(input_), writes(input_), writes(embed_mask_)},
        moved(2 * row_ + row_mask_));
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

    add("norm", {reads(input_), writes(one.norm)}, moved(2 * row_));
    const std::int32_t norm = gathered(one.norm);
    add("qkv", {reads(norm), writes(one.q), writes(one.k), writes(one.v)}, linear(3));
    attend("scores", {reads(one.q), reads(one.k), writes(one.scores)}, 1);
    attend("softmax", {reads(one.scores), writes(one.weights)}, 0, 2 * scores_);
    attend("attention dropout", {reads(one.weights), writes(one.dropped), writes(one.mask)}, 0,
           2 * scores_ + score_mask_);
    attend("context", {reads(one.dropped), reads(one.v), writes(one.context)}, 1);
    product("projection", "attended", {reads(one.context)}, attended, linear(1));
    add("residual", {reads(attended), reads(input_), writes(one.attended_mask), writes(one.middle)},
        moved(3 * row_ + row_mask_));
    add("norm", {reads(one.middle), writes(one.wide_norm)}, moved(2 * row_));
    const std::int32_t wide_norm = gathered(one.wide_norm);
    add("widen", {reads(wide_norm), writes(one.wide)}, linear(4));
    add("gelu", {reads(one.wide), writes(one.active)}, moved(8 * share_));
    product("narrow", "narrow", {reads(one.active)}, narrow, linear(4));
    add("residual", {reads(narrow), reads(one.middle), writes(one.narrow_mask), writes(output)},
        moved(3 * row_ + row_mask_));
    input_ = output;
    layers_.push_back(one);
  }

  constexpr void head_forward() {
    head_input_ = input_;
    head_norm_ = out_.buffer("head norm", row_);
    logits_buffer_ = out_.buffer("logits", logits_);
    add("norm", {reads(input_), writes(head_norm_)}, moved(2 * row_));
    const std::int32_t norm = gathered(head_norm_);
    add("logits", {reads(norm), writes(logits_buffer_)}, vocabulary());
    if (t_ > 1) {  // the largest logit of a row, and the sum of exponentials
      const std::int32_t sums = out_.buffer("row sums", 8 * rows_);
      collective("row sums", {reads(logits_buffer_), writes(sums)}, 16 * rows_ * (t_ - 1) / t_,
                 pieces_of::rows);
      add("loss", {reads(logits_buffer_), reads(sums), writes(logits_buffer_)}, moved(2 * logits_));
    } else {
      // The loss turns the logits into their gradient, in place.
      add("loss", {reads(logits_buffer_), writes(logits_buffer_)}, moved(2 * logits_));
    }
  }

  constexpr void receive_gradient() {
    gradient_ = out_.buffer("output gradient", row_);
    out_.add("receive", {writes(gradient_)});
  }
  constexpr void send_gradient() { out_.add("send", {reads(gradient_)}); }

  constexpr void head_backward_input() {
    gradient_ = out_.buffer("head gradient", row_);
    product("logits back", "head gradient", {reads(logits_buffer_)}, gradient_, vocabulary());
    add("norm back", {reads(head_input_), reads(gradient_), writes(gradient_)}, moved(3 * row_));
  }
  constexpr void head_backward_weight() {
    const std::int32_t norm = gathered(head_norm_);
    weights("logits weights", {reads(norm), reads(logits_buffer_)}, vocabulary());
  }
  constexpr void embed_backward_input() {
    add("embedding dropout back", {reads(embed_mask_), reads(gradient_), writes(gradient_)},
        moved(2 * row_ + row_mask_));
    embed_gradient_ = gradient_;
  }
  constexpr void embed_backward_weight() {
    add("embed weights", {reads(embed_gradient_)}, moved(3 * row_), pieces_of::whole);
  }

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

    add("residual back", {reads(gradient_), reads(one.narrow_mask), writes(one.d_narrow)},
        moved(2 * row_ + row_mask_));
    const std::int32_t d_narrow = gathered(one.d_narrow);
    add("narrow back", {reads(d_narrow), writes(one.d_wide)}, linear(4));
    if (weights_too) narrow_weights(one);
    add("gelu back", {reads(one.wide), reads(one.d_wide), writes(one.d_wide)}, moved(12 * share_));
    product("widen back", "feed-forward norm gradient", {reads(one.d_wide)}, d_wide_norm,
            linear(4));
    if (weights_too) widen_weights(one);
    add("norm back", {reads(one.middle), reads(d_wide_norm), reads(gradient_), writes(gradient_)},
        moved(4 * row_));
    add("residual back", {reads(gradient_), reads(one.attended_mask), writes(one.d_attended)},
        moved(2 * row_ + row_mask_));
    const std::int32_t d_attended = gathered(one.d_attended);
    add("projection back", {reads(d_attended), writes(d_context)}, linear(1));
    if (weights_too) projection_weights(one);
    attend("context back",
           {reads(d_context), reads(one.dropped), reads(one.v), writes(d_scores), writes(one.d_v)},
           2);
    attend("attention dropout back", {reads(one.mask), reads(d_scores), writes(d_scores)}, 0,
           2 * scores_ + score_mask_);
    attend("softmax back", {reads(one.weights), reads(d_scores), writes(d_scores)}, 0, 3 * scores_);
    attend("scores back",
           {reads(d_scores), reads(one.q), reads(one.k), writes(one.d_q), writes(one.d_k)}, 2);
    product("qkv back", "attention norm gradient", {reads(one.d_q), reads(one.d_k), reads(one.d_v)},
            d_norm, linear(3));
    if (weights_too) qkv_weights(one);
    add("norm back", {reads(one.input), reads(d_norm), reads(gradient_), writes(gradient_)},
        moved(4 * row_));
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
    std::int32_t input = -1, norm = -1, q = -1, k = -1, v = -1, scores = -1, weights = -1;
    std::int32_t mask = -1, dropped = -1, context = -1, attended_mask = -1, middle = -1;
    std::int32_t wide_norm = -1, wide = -1, active = -1, narrow_mask = -1;
    std::int32_t d_narrow = -1, d_wide = -1, d_attended = -1, d_q = -1, d_k = -1, d_v = -1;
  };

  //! A product with a matrix of `hidden` by so many times `hidden`, of which each rank has a share.
  constexpr op_work linear(std::int64_t times) const {
    const std::int64_t h = model_.hidden;
    return {2 * rows_ * h * (times * h / t_),
            full_row_ + times * share_ + times * h * h / t_ * model_.bytes.weight,
            0,
            {rows_, h, times * h / t_}};
  }
  constexpr op_work vocabulary() const {
    const std::int64_t share = model_.vocabulary / t_ * model_.hidden;
    return {2 * rows_ * share,
            full_row_ + logits_ + share * model_.bytes.weight,
            0,
            {rows_, model_.hidden, model_.vocabulary / t_}};
  }
  constexpr static op_work moved(std::int64_t bytes) { return {0, bytes}; }

  constexpr void add(std::string_view name, std::initializer_list<op_use> touched,
                     const op_work& work, pieces_of cut = pieces_of::rows) {
    out_.add(name, touched, {.time = on_.name.empty() ? 0 : on_.time(work), .cut = cut});
  }
  //! Products of scores, or what is done to them: by heads, each of which needs all rows.
  constexpr void attend(std::string_view name, std::initializer_list<op_use> touched, int products,
                        std::int64_t bytes = 0) {
    add(name, touched,
        {products * 2 * rows_ * model_.sequence * (model_.hidden / t_),
         bytes + products * (scores_ + 2 * share_),
         0,
         {products > 0 ? model_.sequence : 0, model_.hidden / model_.heads, model_.sequence},
         products * model_.microbatch * model_.heads / t_},
        pieces_of::result);
  }
  constexpr void weights(std::string_view name, std::initializer_list<op_use> touched,
                         const op_work& work) {
    add(name, touched, work, pieces_of::result);
  }
  //! What leaves a rank for it to have its part of a sum, or all parts of a whole, round a ring.
  constexpr std::int64_t ring() const { return full_row_ * (t_ - 1) / t_; }
  constexpr void collective(std::string_view name, std::initializer_list<op_use> touched,
                            std::int64_t message, pieces_of cut) {
    out_.add(name, touched,
             {.time = on_.name.empty() ? 0 : on_.time({0, 0, message}),
              .stream = static_cast<std::uint8_t>(stream_type::tensor_parallel),
              .cut = cut,
              .holds = static_cast<std::int16_t>(on_.collective),
              .collective = true});
  }
  //! A product of which each rank has only a summand, and the sum.
  constexpr void product(std::string_view name, std::string_view sum,
                         std::initializer_list<op_use> touched, std::int32_t result,
                         const op_work& work) {
    const bool scattered = model_.sequence_parallel && t_ > 1;
    const std::int32_t made = scattered ? out_.buffer("summand", full_row_) : result;
    std::vector<op_use> all(touched);
    all.push_back(writes(made));
    out_.add(name, viewed(all), {.time = on_.name.empty() ? 0 : on_.time(work), .cut = pieces_of::rows});
    // Cut by rows, what is scattered would come in another order.
    if (scattered)
      collective(sum, {reads(made), writes(result)}, ring(), pieces_of::whole);
    else if (t_ > 1)
      collective(sum, {reads(made), writes(made)}, 2 * ring(), pieces_of::rows);
  }
  //! All rows of a buffer that sequence parallelism splits, for the time of a product.
  constexpr std::int32_t gathered(std::int32_t part) {
    if (!model_.sequence_parallel || t_ == 1) return part;
    const std::int32_t all = out_.buffer("gathered", full_row_);
    collective("gather", {reads(part), writes(all)}, ring(), pieces_of::whole);
    return all;
  }
  constexpr void narrow_weights(const layer& one) {
    const std::int32_t gradient = gathered(one.d_narrow);
    weights("narrow weights", {reads(one.active), reads(gradient)}, linear(4));
  }
  constexpr void widen_weights(const layer& one) {
    const std::int32_t norm = gathered(one.wide_norm);
    weights("widen weights", {reads(norm), reads(one.d_wide)}, linear(4));
  }
  constexpr void projection_weights(const layer& one) {
    const std::int32_t gradient = gathered(one.d_attended);
    weights("projection weights", {reads(one.context), reads(gradient)}, linear(1));
  }
  constexpr void qkv_weights(const layer& one) {
    const std::int32_t norm = gathered(one.norm);
    weights("qkv weights", {reads(norm), reads(one.d_q), reads(one.d_k), reads(one.d_v)},
            linear(3));
  }

  transformer model_;
  program_chain& out_;
  machine on_;
  std::int64_t t_ = 1, rows_ = 0;
  std::int64_t row_ = 0, full_row_ = 0, row_mask_ = 0, share_ = 0, scores_ = 0, score_mask_ = 0,
               logits_ = 0;
  std::int32_t input_ = -1, gradient_ = -1, embed_mask_ = -1, embed_gradient_ = -1;
  std::int32_t head_input_ = -1, head_norm_ = -1, logits_buffer_ = -1;
  std::vector<layer> layers_;
};

}  // namespace stretto
