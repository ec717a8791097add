#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "stretto/model/transformer_ops.hpp"

namespace stretto {

//! The attention of one layer, from its norm to its residual: its ops, and what they keep. Of a
//! GPT-like layer with as many heads of keys and values that is 13 s b h + 5 a s^2 b bytes in half
//! precision, its input's 2 s b h among them (Korthikanti et al. 2022, section 4), with a fused
//! kernel 13 s b h + 4 a s b.
//!
//! A slice reads the keys and values of those before it, and adds to their gradients, which each
//! therefore keeps room for from its forward on. Scores have room for the keys that a given slice
//! sees; of equal ones, for as many as the last has.
class transformer_attention {
 public:
  //! @return the residual's sum
  constexpr std::int32_t forward(transformer_ops& to, std::int32_t input) {
    const transformer& model = to.model();
    const std::int64_t share = to.share(model.hidden);
    const std::int64_t kv = to.share(model.kv_width());
    input_ = input;
    norm_ = to.buffer("attention norm", to.row());
    q_ = to.buffer("queries", share);
    k_ = to.buffer("keys", kv);
    v_ = to.buffer("values", kv);
    context_ = to.buffer("context", share);

    to.norm(input, norm_);
    const std::int32_t norm = to.gathered(norm_);
    to.add("qkv", {reads(norm), writes(q_), writes(k_), writes(v_)}, to.linear(qkv_width(to)));
    if (model.layers == architecture::llama)
      to.add("rotary", {reads(q_), reads(k_), writes(q_), writes(k_)}, to.moved(2 * (share + kv)));
    if (model.sliced()) {
      make_kv_gradients(to);
      to.add("clear gradients", {writes(d_k_), writes(d_v_)}, to.moved(2 * kv));
    }
    if (model.attention == attention_kernel::fused)
      fused(to);
    else
      plain(to);
    const std::int32_t attended = to.buffer("attended", to.row());
    if (to.dropout()) attended_mask_ = to.buffer("attended mask", to.row_mask());
    const std::int32_t middle = to.buffer("middle", to.row());
    to.product("projection", "attended", {reads(context_)}, attended, to.linear(model.hidden));
    to.residual(attended, input, attended_mask_, middle);
    return middle;
  }

  //! @param weights_too  their gradients are made here, and not by backward_weight
  //! @return the gradient of its input
  constexpr std::int32_t backward_input(transformer_ops& to, std::int32_t gradient,
                                        bool weights_too) {
    const transformer& model = to.model();
    const std::int64_t share = to.share(model.hidden);
    const std::int64_t kv = to.share(model.kv_width());
    d_attended_ = to.residual_back(gradient, attended_mask_, "attended gradient");
    const std::int32_t d_context = to.buffer("context gradient", share);
    d_q_ = to.buffer("queries gradient", share);
    if (!model.sliced()) make_kv_gradients(to);
    const std::int32_t d_norm = to.buffer("attention norm gradient", to.row());

    const std::int32_t d_attended = to.gathered(d_attended_);
    to.add("projection back", {reads(d_attended), writes(d_context)}, to.linear(model.hidden));
    if (weights_too) projection_weights(to, d_attended);
    if (model.attention == attention_kernel::fused)
      fused_back(to, d_context);
    else
      plain_back(to, d_context);
    if (model.layers == architecture::llama)
      to.add("rotary back", {reads(d_q_), reads(d_k_), writes(d_q_), writes(d_k_)},
             to.moved(2 * (share + kv)));
    to.product("qkv back", "attention norm gradient", {reads(d_q_), reads(d_k_), reads(d_v_)},
               d_norm, to.linear(qkv_width(to)));
    if (weights_too) qkv_weights(to);
    return to.norm_back(input_, d_norm, gradient, !weights_too && d_attended_ == gradient);
  }
  constexpr void backward_weight(transformer_ops& to) const {
    projection_weights(to, to.gathered(d_attended_));
    qkv_weights(to);
  }

 private:
  static constexpr std::int64_t qkv_width(const transformer_ops& to) {
    return to.model().hidden + 2 * to.model().kv_width();
  }
  //! Of a score for every key, of all the rank's heads; and its mask's bytes.
  static constexpr std::int64_t scores(const transformer_ops& to) {
    return to.model().heads * to.model().seen() * to.rows() / to.shards();
  }
  static constexpr std::int64_t score_bytes(const transformer_ops& to) {
    return scores(to) * to.model().bytes.activation;
  }
  constexpr void make_kv_gradients(transformer_ops& to) {
    d_k_ = to.buffer("keys gradient", to.share(to.model().kv_width()));
    d_v_ = to.buffer("values gradient", to.share(to.model().kv_width()));
  }

  constexpr void plain(transformer_ops& to) {
    const std::int64_t bytes = score_bytes(to);
    const std::int32_t raw = to.buffer_by_heads("scores", bytes);
    dropped_ = softmax_ = to.out().view("softmax", raw);
    attend(to, "scores", {reads(q_), reads(k_), writes(raw)}, 1);
    attend(to, "softmax", {reads(raw), writes(softmax_)}, 0, 2 * bytes);
    if (to.dropout()) {
      mask_ = to.buffer_by_heads("attention mask", scores(to));
      dropped_ = to.buffer_by_heads("dropped softmax", bytes);
      attend(to, "attention dropout", {reads(softmax_), writes(dropped_), writes(mask_)}, 0,
             2 * bytes + scores(to));
    }
    attend(to, "context", {reads(dropped_), reads(v_), writes(context_)}, 1);
  }
  constexpr void plain_back(transformer_ops& to, std::int32_t d_context) {
    const std::int64_t bytes = score_bytes(to);
    const std::int32_t d_scores = to.buffer_by_heads("scores gradient", bytes);
    attend(to, "context back",
           {reads(d_context), reads(dropped_), reads(v_), writes(d_scores), writes(d_v_)}, 2);
    if (to.dropout())
      attend(to, "attention dropout back", {reads(mask_), reads(d_scores), writes(d_scores)}, 0,
             2 * bytes + scores(to));
    attend(to, "softmax back", {reads(softmax_), reads(d_scores), writes(d_scores)}, 0, 3 * bytes);
    attend(to, "scores back", {reads(d_scores), reads(q_), reads(k_), writes(d_q_), writes(d_k_)},
           2);
  }
  //! Products of scores, or what is done to them: by heads, each of which needs all rows.
  static constexpr void attend(transformer_ops& to, std::string_view name,
                               std::initializer_list<op_use> touched, int products,
                               std::int64_t bytes = 0) {
    const transformer& model = to.model();
    const std::int64_t read = to.share(model.hidden) + keys(to, model.seen());
    to.add(name, touched,
           {products * 2 * to.rows() * model.seen() * (model.hidden / to.shards()),
            bytes + products * (score_bytes(to) + read),
            0,
            {products > 0 ? model.length() : 0, model.hidden / model.heads, model.seen()},
            products * model.microbatch * model.heads / to.shards()},
           pieces_of::result);
  }

  //! Dropout needs no mask: what was dropped is drawn again.
  constexpr void fused(transformer_ops& to) {
    sums_ = to.buffer_by_heads("sums of rows", sum_bytes(to));
    const std::int64_t kv = read_kv(to);
    to.add("attention", {reads(q_), reads(k_), reads(v_), writes(context_), writes(sums_)},
           in_one(to, 2, 2 * to.share(to.model().hidden) + kv + sum_bytes(to)), pieces_of::result);
  }
  constexpr void fused_back(transformer_ops& to, std::int32_t d_context) {
    const transformer& model = to.model();
    const std::int64_t share = to.share(model.hidden);
    // All blocks of keys add to a query's gradient, in single precision.
    const std::int64_t wide = share / model.bytes.activation * 4;
    const std::int32_t collected = to.buffer_by_heads("queries gradient, collected", wide);
    const std::int32_t products = to.buffer_by_heads("products of rows", sum_bytes(to));
    to.add("attention back",
           {reads(d_context), reads(q_), reads(k_), reads(v_), reads(context_), reads(sums_),
            writes(collected), writes(products), writes(d_q_), writes(d_k_), writes(d_v_)},
           in_one(to, 5, 4 * share + 2 * read_kv(to) + 2 * wide + 3 * sum_bytes(to)),
           pieces_of::result);
  }
  //! The rank's share of the keys of so many tokens of each sequence.
  static constexpr std::int64_t keys(const transformer_ops& to, std::int64_t tokens) {
    const transformer& model = to.model();
    return tokens * model.microbatch * model.kv_width() * model.bytes.activation / to.shards();
  }
  //! Keys and values that a slice reads: its own, and those before; of equal ones the mean.
  static constexpr std::int64_t read_kv(const transformer_ops& to) {
    const transformer& model = to.model();
    return model.slice.end > 0 ? 2 * keys(to, model.seen())
                               : to.share(model.kv_width()) * (model.slices + 1);
  }
  //! On the average half of the scores are masked, and skipped.
  static constexpr op_work in_one(const transformer_ops& to, int products, std::int64_t bytes) {
    const transformer& model = to.model();
    return {products * to.rows() * model.attends_twice() * (model.hidden / to.shards()),
            bytes,
            0,
            {model.length(), model.hidden / model.heads, (model.attends_twice() + 1) / 2},
            products * model.microbatch * model.heads / to.shards()};
  }
  //! A number in single precision for each row and head.
  static constexpr std::int64_t sum_bytes(const transformer_ops& to) {
    return 4 * to.model().heads * to.rows() / to.shards();
  }

  //! @param gradient  all rows of the product's
  constexpr void projection_weights(transformer_ops& to, std::int32_t gradient) const {
    to.weights("projection weights", {reads(context_), reads(gradient)},
               to.linear(to.model().hidden));
  }
  constexpr void qkv_weights(transformer_ops& to) const {
    const std::int32_t norm = to.gathered(norm_);
    to.weights("qkv weights", {reads(norm), reads(d_q_), reads(d_k_), reads(d_v_)},
               to.linear(qkv_width(to)));
  }

  std::int32_t input_ = -1, norm_ = -1, q_ = -1, k_ = -1, v_ = -1;
  std::int32_t softmax_ = -1, mask_ = -1, dropped_ = -1, sums_ = -1;
  std::int32_t context_ = -1, attended_mask_ = -1;
  std::int32_t d_attended_ = -1, d_q_ = -1, d_k_ = -1, d_v_ = -1;
};

}  // namespace stretto
