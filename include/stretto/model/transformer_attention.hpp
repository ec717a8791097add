#pragma once

#include <cstdint>

#include "stretto/model/transformer_context.hpp"
#include "stretto/model/transformer_fused.hpp"
#include "stretto/model/transformer_ops.hpp"
#include "stretto/model/transformer_qkv.hpp"
#include "stretto/model/transformer_scores.hpp"

namespace stretto {

//! The attention of one layer, from its norm to its residual: its ops, and what they keep. Of a
//! GPT-like layer with as many heads of keys and values that is 13 s b h + 5 a s^2 b bytes in half
//! precision, its input's 2 s b h among them (Korthikanti et al. 2022, section 4), with a fused
//! kernel 13 s b h + 4 a s b.
//!
//! A slice reads the keys and values of those before it, and adds to their gradients, which each
//! therefore keeps room for from its forward on.
class transformer_attention {
 public:
  //! @param windowed  see transformer::window
  //! @return the residual's sum
  constexpr std::int32_t forward(transformer_ops& to, std::int32_t input, bool windowed) {
    const transformer& model = to.model();
    input_ = input;
    from_ = transformer_context(windowed);
    const std::int32_t norm = to.buffer("attention norm", to.row());
    to.norm(input, norm);
    qkv_.forward(to, norm);
    context_ = to.buffer("context", to.share(model.context_width()));
    if (model.sliced()) {
      qkv_.make_kv_gradients(to);
      to.add("clear gradients", {writes(qkv_.d_k), writes(qkv_.d_v)},
             to.moved(to.share(model.key_width()) + to.share(model.value_width())));
    }
    const keys_and_values own{qkv_.k, qkv_.v};
    const keys_and_values all =
        in_ring(model) ? own : from_.gather(to, "gather keys and values", own);
    if (model.attention == attention_kernel::fused)
      fused_.forward(to, qkv_, from_, all, context_);
    else
      scores_.forward(to, qkv_, all, context_);
    const std::int32_t attended = to.buffer("attended", to.row());
    if (to.dropout()) attended_mask_ = to.buffer("attended mask", to.row_mask());
    const std::int32_t middle = to.buffer("middle", to.row());
    to.product("projection", "attended", {reads(context_)}, attended, projected(to));
    to.residual(attended, input, attended_mask_, middle);
    return middle;
  }

  //! @param weights_too  their gradients are made here, and not by backward_weight
  //! @return the gradient of its input
  constexpr std::int32_t backward_input(transformer_ops& to, std::int32_t gradient,
                                        bool weights_too) {
    const transformer& model = to.model();
    d_attended_ = to.residual_back(gradient, attended_mask_, "attended gradient");
    const std::int32_t d_context =
        to.buffer("context gradient", to.share(model.context_width()));
    qkv_.make_query_gradients(to);
    if (!model.sliced()) qkv_.make_kv_gradients(to);
    const std::int32_t d_norm = to.buffer("attention norm gradient", to.row());

    const std::int32_t d_attended = to.gathered(d_attended_);
    to.add("projection back", {reads(d_attended), writes(d_context)}, projected(to));
    if (weights_too) projection_weights(to, d_attended);
    const keys_and_values own{qkv_.k, qkv_.v}, d_own{qkv_.d_k, qkv_.d_v};
    if (in_ring(model)) {
      fused_.backward(to, qkv_, from_, own, d_own, d_context);
    } else {
      const keys_and_values all = from_.gather(to, "gather keys and values back", own);
      const keys_and_values gradients = from_.gradients(to, d_own);
      if (model.attention == attention_kernel::fused)
        fused_.backward(to, qkv_, from_, all, gradients, d_context);
      else
        scores_.backward(to, qkv_, all, gradients, d_context);
      from_.scatter(to, gradients, d_own);
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
  static constexpr bool in_ring(const transformer& model) { return model.ring_steps() > 1; }
  static constexpr op_work projected(const transformer_ops& to) {
    return to.linear(to.model().context_width());
  }
  //! @param gradient  all rows of the product's
  constexpr void projection_weights(transformer_ops& to, std::int32_t gradient) const {
    to.weights("projection weights", {reads(context_), reads(gradient)}, projected(to));
  }

  transformer_qkv qkv_;
  transformer_context from_;
  transformer_scores scores_;
  transformer_fused fused_;  // one of the two
  std::int32_t input_ = -1, context_ = -1, attended_mask_ = -1, d_attended_ = -1;
};

}  // namespace stretto
