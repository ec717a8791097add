#pragma once

#include <cstdint>

#include "stretto/model/transformer_ops.hpp"

namespace stretto {

//! The feed-forward of one layer, from its norm to its residual: its ops, and what they keep. Of a
//! layer that is 19 s b h bytes in half precision, and the input's 2 s b h (Korthikanti et al. 2022,
//! section 4).
class transformer_feed_forward {
 public:
  //! @return the residual's sum
  constexpr std::int32_t forward(transformer_ops& to, std::int32_t input) {
    const std::int64_t width = 4 * to.model().hidden;
    input_ = input;
    norm_ = to.buffer("feed-forward norm", to.row());
    wide_ = to.buffer("wide", to.share(width));
    active_ = to.buffer("active", to.share(width));
    const std::int32_t narrow = to.buffer("narrow", to.row());
    mask_ = to.buffer("narrow mask", to.row_mask());
    const std::int32_t output = to.buffer("output", to.row());

    to.norm(input, norm_);
    const std::int32_t norm = to.gathered(norm_);
    to.add("widen", {reads(norm), writes(wide_)}, to.linear(width));
    to.add("gelu", {reads(wide_), writes(active_)}, to.moved(2 * to.share(width)));
    to.product("narrow", "narrow", {reads(active_)}, narrow, to.linear(width));
    to.residual(narrow, input, mask_, output);
    return output;
  }

  //! The gradient of its input in place of that of its output.
  constexpr void backward_input(transformer_ops& to, std::int32_t gradient, bool weights_too) {
    const std::int64_t width = 4 * to.model().hidden;
    d_narrow_ = to.buffer("narrow gradient", to.row());
    d_wide_ = to.buffer("wide gradient", to.share(width));
    const std::int32_t d_norm = to.buffer("feed-forward norm gradient", to.row());

    to.residual_back(gradient, mask_, d_narrow_);
    const std::int32_t d_narrow = to.gathered(d_narrow_);
    to.add("narrow back", {reads(d_narrow), writes(d_wide_)}, to.linear(width));
    if (weights_too) narrow_weights(to);
    to.add("gelu back", {reads(wide_), reads(d_wide_), writes(d_wide_)},
           to.moved(3 * to.share(width)));
    to.product("widen back", "feed-forward norm gradient", {reads(d_wide_)}, d_norm,
               to.linear(width));
    if (weights_too) widen_weights(to);
    to.norm_back(input_, d_norm, gradient);
  }
  constexpr void backward_weight(transformer_ops& to) const {
    narrow_weights(to);
    widen_weights(to);
  }

 private:
  constexpr void narrow_weights(transformer_ops& to) const {
    const std::int32_t gradient = to.gathered(d_narrow_);
    to.weights("narrow weights", {reads(active_), reads(gradient)},
               to.linear(4 * to.model().hidden));
  }
  constexpr void widen_weights(transformer_ops& to) const {
    const std::int32_t norm = to.gathered(norm_);
    to.weights("widen weights", {reads(norm), reads(d_wide_)}, to.linear(4 * to.model().hidden));
  }

  std::int32_t input_ = -1, norm_ = -1, wide_ = -1, active_ = -1, mask_ = -1;
  std::int32_t d_narrow_ = -1, d_wide_ = -1;
};

}  // namespace stretto
