#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "stretto/model/transformer_ops.hpp"

namespace stretto {

//! The attention of one layer, from its norm to its residual: its ops, and what they keep. Of a layer
//! that is 11 s b h + 5 a s^2 b bytes in half precision, and the input's 2 s b h (Korthikanti et al.
//! 2022, section 4).
class transformer_attention {
 public:
  //! @return the residual's sum
  constexpr std::int32_t forward(transformer_ops& to, std::int32_t input) {
    const transformer& model = to.model();
    const std::int64_t share = to.share(model.hidden);
    const std::int64_t scores = score_bytes(to);
    input_ = input;
    norm_ = to.buffer("attention norm", to.row());
    q_ = to.buffer("queries", share);
    k_ = to.buffer("keys", share);
    v_ = to.buffer("values", share);
    const std::int32_t raw = to.buffer("scores", scores);
    softmax_ = to.out().view("softmax", raw);
    mask_ = to.buffer("attention mask", mask_bytes(to));
    dropped_ = to.buffer("dropped softmax", scores);
    context_ = to.buffer("context", share);
    const std::int32_t attended = to.buffer("attended", to.row());
    attended_mask_ = to.buffer("attended mask", to.row_mask());
    const std::int32_t middle = to.buffer("middle", to.row());

    to.norm(input, norm_);
    const std::int32_t norm = to.gathered(norm_);
    to.add("qkv", {reads(norm), writes(q_), writes(k_), writes(v_)}, to.linear(3 * model.hidden));
    attend(to, "scores", {reads(q_), reads(k_), writes(raw)}, 1);
    attend(to, "softmax", {reads(raw), writes(softmax_)}, 0, 2 * scores);
    attend(to, "attention dropout", {reads(softmax_), writes(dropped_), writes(mask_)}, 0,
           2 * scores + mask_bytes(to));
    attend(to, "context", {reads(dropped_), reads(v_), writes(context_)}, 1);
    to.product("projection", "attended", {reads(context_)}, attended, to.linear(model.hidden));
    to.residual(attended, input, attended_mask_, middle);
    return middle;
  }

  //! The gradient of its input in place of that of its output.
  constexpr void backward_input(transformer_ops& to, std::int32_t gradient, bool weights_too) {
    const transformer& model = to.model();
    const std::int64_t share = to.share(model.hidden);
    const std::int64_t scores = score_bytes(to);
    d_attended_ = to.buffer("attended gradient", to.row());
    const std::int32_t d_context = to.buffer("context gradient", share);
    const std::int32_t d_scores = to.buffer("scores gradient", scores);
    d_q_ = to.buffer("queries gradient", share);
    d_k_ = to.buffer("keys gradient", share);
    d_v_ = to.buffer("values gradient", share);
    const std::int32_t d_norm = to.buffer("attention norm gradient", to.row());

    to.residual_back(gradient, attended_mask_, d_attended_);
    const std::int32_t d_attended = to.gathered(d_attended_);
    to.add("projection back", {reads(d_attended), writes(d_context)}, to.linear(model.hidden));
    if (weights_too) projection_weights(to);
    attend(to, "context back",
           {reads(d_context), reads(dropped_), reads(v_), writes(d_scores), writes(d_v_)}, 2);
    attend(to, "attention dropout back", {reads(mask_), reads(d_scores), writes(d_scores)}, 0,
           2 * scores + mask_bytes(to));
    attend(to, "softmax back", {reads(softmax_), reads(d_scores), writes(d_scores)}, 0, 3 * scores);
    attend(to, "scores back",
           {reads(d_scores), reads(q_), reads(k_), writes(d_q_), writes(d_k_)}, 2);
    to.product("qkv back", "attention norm gradient", {reads(d_q_), reads(d_k_), reads(d_v_)},
               d_norm, to.linear(3 * model.hidden));
    if (weights_too) qkv_weights(to);
    to.norm_back(input_, d_norm, gradient);
  }
  constexpr void backward_weight(transformer_ops& to) const {
    projection_weights(to);
    qkv_weights(to);
  }

 private:
  static constexpr std::int64_t score_bytes(const transformer_ops& to) {
    return mask_bytes(to) * to.model().bytes.activation;
  }
  static constexpr std::int64_t mask_bytes(const transformer_ops& to) {
    return to.model().heads * to.model().sequence * to.rows() / to.shards();
  }
  //! Products of scores, or what is done to them: by heads, each of which needs all rows.
  static constexpr void attend(transformer_ops& to, std::string_view name,
                               std::initializer_list<op_use> touched, int products,
                               std::int64_t bytes = 0) {
    const transformer& model = to.model();
    to.add(name, touched,
           {products * 2 * to.rows() * model.sequence * (model.hidden / to.shards()),
            bytes + products * (score_bytes(to) + 2 * to.share(model.hidden)),
            0,
            {products > 0 ? model.sequence : 0, model.hidden / model.heads, model.sequence},
            products * model.microbatch * model.heads / to.shards()},
           pieces_of::result);
  }
  constexpr void projection_weights(transformer_ops& to) const {
    const std::int32_t gradient = to.gathered(d_attended_);
    to.weights("projection weights", {reads(context_), reads(gradient)},
               to.linear(to.model().hidden));
  }
  constexpr void qkv_weights(transformer_ops& to) const {
    const std::int32_t norm = to.gathered(norm_);
    to.weights("qkv weights", {reads(norm), reads(d_q_), reads(d_k_), reads(d_v_)},
               to.linear(3 * to.model().hidden));
  }

  std::int32_t input_ = -1, norm_ = -1, q_ = -1, k_ = -1, v_ = -1;
  std::int32_t softmax_ = -1, mask_ = -1, dropped_ = -1;
  std::int32_t context_ = -1, attended_mask_ = -1;
  std::int32_t d_attended_ = -1, d_q_ = -1, d_k_ = -1, d_v_ = -1;
};

}  // namespace stretto
