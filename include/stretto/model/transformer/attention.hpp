#pragma once

#include <cstdint>
#include <string_view>

#include "stretto/model/transformer/context.hpp"
#include "stretto/model/transformer/fused.hpp"
#include "stretto/model/transformer/ops.hpp"
#include "stretto/model/transformer/qkv.hpp"
#include "stretto/model/transformer/scores.hpp"

namespace stretto {

//! The attention of one layer, from its norm to its residual: its ops, and what they keep. Of a
//! GPT-like layer with as many heads of keys and values that is 13 s b h + 5 a s^2 b bytes in half
//! precision, its input's 2 s b h among them (Korthikanti et al. 2022, section 4), with a fused
//! kernel 13 s b h + 4 a s b. With products in FP8 11 and 13 s b h (a context that is attended from
//! again is kept beside its copy).
//!
//! A slice reads the keys and values of those before it, and adds to their gradients, which each
//! therefore keeps room for from its forward on. Of devices that share a sequence each has its
//! tokens' queries, keys and values, or, by the exchange of heads, those of its heads.
class transformer_attention {
 public:
  //! @param windowed  see transformer::window
  //! @return the residual's sum
  constexpr std::int32_t forward(transformer_ops& to, std::int32_t input, bool windowed) {
    const transformer& model = to.model();
    input_ = input;
    from_ = transformer_context(windowed);
    const std::int32_t norm = to.buffer("attention norm", to.operand_row());
    to.norm(input, norm, to.operand_row());
    qkv_.forward(to, norm);
    const std::int64_t context_bytes = to.share(model.context_width());
    const std::int32_t context = to.buffer("context", context_bytes);
    q_ = qkv_.q, own_ = {qkv_.k, qkv_.v};
    std::int32_t made = context;
    if (model.deals_heads()) {
      q_ = by_heads(to, "queries of heads", model.query_width());
      own_ = {by_heads(to, "keys of heads", model.key_width()),
              by_heads(to, "values of heads", model.value_width())};
      made = by_heads(to, "context of heads", model.context_width());
      from_.exchange(to, "tokens for heads",
                     {reads(qkv_.q), reads(qkv_.k), reads(qkv_.v), writes(q_), writes(own_.k),
                      writes(own_.v)},
                     qkv_.width(to));
    }
    if (model.sliced()) {
      make_gradients(to);
      to.add("clear gradients", {writes(d_own_.k), writes(d_own_.v)},
             to.moved(to.share(model.key_width()) + to.share(model.value_width())));
    }
    const keys_and_values all = from_.gather(to, "gather keys and values", own_);
    if (model.attention == attention_kernel::fused)
      fused_.forward(to, from_, q_, all, made);
    else
      scores_.forward(to, q_, all, made);
    if (model.deals_heads())
      from_.exchange(to, "heads for tokens", {reads(made), writes(context)},
                     model.context_width());
    context_ = to.operand(context, context_bytes);
    const std::int32_t attended = to.buffer("attended", to.row());
    if (to.dropout()) attended_mask_ = to.buffer("attended mask", to.row_mask());
    const std::int32_t middle = to.buffer("middle", to.row());
    to.product("projection", "attended", {reads(context_)}, attended, projected(to, inner));
    to.residual(attended, input, attended_mask_, middle);
    return middle;
  }

  //! @param weights_too  their gradients are made here, and not by backward_weight
  //! @return the gradient of its input
  constexpr std::int32_t backward_input(transformer_ops& to, std::int32_t gradient,
                                        bool weights_too) {
    const transformer& model = to.model();
    const std::int32_t d_middle =
        to.residual_back(gradient, attended_mask_, "attended gradient");
    d_attended_ = to.operand(d_middle, to.row());
    std::int32_t d_context = to.buffer("context gradient", to.share(model.context_width()));
    qkv_.make_query_gradients(to);
    if (!model.sliced()) make_gradients(to);
    const std::int32_t d_norm = to.buffer("attention norm gradient", to.row());

    const std::int32_t d_attended = to.gathered(d_attended_);
    to.add("projection back", {reads(d_attended), writes(d_context)}, projected(to, columns));
    if (weights_too) projection_weights(to, d_attended);
    std::int32_t d_q = qkv_.d_q;
    if (model.deals_heads()) {
      const std::int32_t whole = d_context;
      d_context = by_heads(to, "context gradient of heads", model.context_width());
      d_q = by_heads(to, "queries gradient of heads", model.query_width());
      from_.exchange(to, "tokens for heads back", {reads(whole), writes(d_context)},
                     model.context_width());
    }
    const keys_and_values all = from_.gather(to, "gather keys and values back", own_);
    const keys_and_values gradients = from_.gradients(to, d_own_);
    if (model.attention == attention_kernel::fused)
      fused_.backward(to, from_, q_, all, d_q, gradients, d_context);
    else
      scores_.backward(to, q_, all, d_q, gradients, d_context);
    from_.scatter(to, gradients, d_own_);
    if (model.deals_heads()) {
      qkv_.make_kv_gradients(to);
      from_.exchange(to, "heads for tokens back",
                     {reads(d_q), reads(d_own_.k), reads(d_own_.v), writes(qkv_.d_q),
                      writes(qkv_.d_k), writes(qkv_.d_v)},
                     qkv_.width(to));
    }
    qkv_.backward_input(to, d_norm);
    if (weights_too) qkv_.backward_weight(to);
    return to.norm_back(input_, d_norm, gradient, !weights_too && d_attended_ == gradient);
  }
  constexpr void backward_weight(transformer_ops& to) const {
    projection_weights(to, to.gathered(d_attended_));
    qkv_.backward_weight(to);
  }

 private:
  using enum made_by_product;

  //! What a device has of some heads of all tokens, which is as much as of all heads of some.
  static constexpr std::int32_t by_heads(transformer_ops& to, std::string_view name,
                                         std::int64_t width) {
    return to.buffer_by_heads(name, to.share(width));
  }
  //! Of the device's keys and values, to which later slices add.
  constexpr void make_gradients(transformer_ops& to) {
    const transformer& model = to.model();
    if (model.deals_heads()) {
      d_own_ = {by_heads(to, "keys gradient of heads", model.key_width()),
                by_heads(to, "values gradient of heads", model.value_width())};
    } else {
      qkv_.make_kv_gradients(to);
      d_own_ = {qkv_.d_k, qkv_.d_v};
    }
  }
  static constexpr op_work projected(const transformer_ops& to, made_by_product made) {
    return to.linear(to.model().context_width(), made);
  }
  //! @param gradient  all rows of the product's
  constexpr void projection_weights(transformer_ops& to, std::int32_t gradient) const {
    to.weights("projection weights", {reads(context_), reads(gradient)},
               projected(to, matrix));
  }

  transformer_qkv qkv_;
  transformer_context from_;
  transformer_scores scores_;
  transformer_fused fused_;  // one of the two
  std::int32_t q_ = -1;
  keys_and_values own_, d_own_;  // of the device, as it attends to them
  std::int32_t input_ = -1, context_ = -1, attended_mask_ = -1, d_attended_ = -1;
};

}  // namespace stretto
