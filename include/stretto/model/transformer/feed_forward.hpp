#pragma once

#include <cstdint>

#include "stretto/model/transformer/ops.hpp"

namespace stretto {

//! The feed-forward of one layer, from its norm to its residual: its ops, and what they keep. Of a
//! GPT-like layer that is 21 s b h bytes in half precision, its input's 2 s b h among them
//! (Korthikanti et al. 2022, section 4); of a SwiGLU as wide as f, 4 s b h + 6 s b f. With products
//! in FP8 16 s b h, and 3 s b h + 5 s b f.
class transformer_feed_forward {
 public:
  //! @return the residual's sum
  constexpr std::int32_t forward(transformer_ops& to, std::int32_t input) {
    const transformer& model = to.model();
    const bool gated = model.layers == architecture::llama;
    const std::int64_t wide = to.share(wide_width(to));
    const std::int64_t active = to.operand_share(width(to));
    input_ = input;
    norm_ = to.buffer("feed-forward norm", to.operand_row());
    wide_ = to.buffer("wide", wide);
    active_ = to.buffer("active", active);
    const std::int32_t narrow = to.buffer("narrow", to.row());
    if (to.dropout()) mask_ = to.buffer("narrow mask", to.row_mask());
    const std::int32_t output = to.buffer("output", to.row());

    to.norm(input, norm_, to.operand_row());
    const std::int32_t norm = to.gathered(norm_);
    to.add("widen", {reads(norm), writes(wide_)}, to.linear(wide_width(to), columns));
    to.add(gated ? "swiglu" : "gelu", {reads(wide_), writes(active_)}, to.moved(wide + active));
    to.product("narrow", "narrow", {reads(active_)}, narrow, to.linear(width(to), inner));
    to.residual(narrow, input, mask_, output);
    return output;
  }

  //! @param weights_too  their gradients are made here, and not by backward_weight
  //! @return the gradient of its input
  constexpr std::int32_t backward_input(transformer_ops& to, std::int32_t gradient,
                                        bool weights_too) {
    const transformer& model = to.model();
    const bool gated = model.layers == architecture::llama;
    const std::int64_t wide = to.share(wide_width(to));
    const std::int64_t d_wide = to.operand_share(wide_width(to));
    const std::int64_t active = to.share(width(to));
    const std::int32_t d_output = to.residual_back(gradient, mask_, "narrow gradient");
    d_narrow_ = to.operand(d_output, to.row());
    d_wide_ = to.buffer("wide gradient", d_wide);
    // As wide as what it comes of, a GELU's is made in place.
    const bool apart = gated || to.casts();
    const std::int32_t d_active = apart ? to.buffer("active gradient", active) : d_wide_;
    const std::int32_t d_norm = to.buffer("feed-forward norm gradient", to.row());

    const std::int32_t d_narrow = to.gathered(d_narrow_);
    to.add("narrow back", {reads(d_narrow), writes(d_active)}, to.linear(width(to), columns));
    if (weights_too) narrow_weights(to, d_narrow);
    to.add(gated ? "swiglu back" : "gelu back", {reads(wide_), reads(d_active), writes(d_wide_)},
           to.moved(wide + d_wide + active));
    to.product("widen back", "feed-forward norm gradient", {reads(d_wide_)}, d_norm,
               to.linear(wide_width(to), inner));
    if (weights_too) widen_weights(to);
    return to.norm_back(input_, d_norm, gradient, !weights_too && d_narrow_ == gradient);
  }
  constexpr void backward_weight(transformer_ops& to) const {
    narrow_weights(to, to.gathered(d_narrow_));
    widen_weights(to);
  }

 private:
  using enum made_by_product;

  static constexpr std::int64_t width(const transformer_ops& to) {
    return to.model().dense_width();
  }
  static constexpr std::int64_t wide_width(const transformer_ops& to) {
    return to.model().wide_of(width(to));
  }
  //! @param gradient  all rows of the product's
  constexpr void narrow_weights(transformer_ops& to, std::int32_t gradient) const {
    to.weights("narrow weights", {reads(active_), reads(gradient)},
               to.linear(width(to), matrix));
  }
  constexpr void widen_weights(transformer_ops& to) const {
    const std::int32_t norm = to.gathered(norm_);
    to.weights("widen weights", {reads(norm), reads(d_wide_)}, to.linear(wide_width(to), matrix));
  }

  std::int32_t input_ = -1, norm_ = -1, wide_ = -1, active_ = -1, mask_ = -1;
  std::int32_t d_narrow_ = -1, d_wide_ = -1;
};

}  // namespace stretto
