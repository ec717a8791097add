#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "stretto/model/transformer_ops.hpp"
#include "stretto/model/transformer_qkv.hpp"

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
  //! @param windowed  see transformer::window
  //! @return the residual's sum
  constexpr std::int32_t forward(transformer_ops& to, std::int32_t input, bool windowed) {
    const transformer& model = to.model();
    input_ = input;
    windowed_ = windowed;
    const std::int32_t norm = to.buffer("attention norm", to.row());
    to.norm(input, norm);
    qkv_.forward(to, norm);
    context_ = to.buffer("context", to.share(model.context_width()));
    if (model.sliced()) {
      qkv_.make_kv_gradients(to);
      to.add("clear gradients", {writes(qkv_.d_k), writes(qkv_.d_v)},
             to.moved(to.share(model.key_width()) + to.share(model.value_width())));
    }
    if (model.attention == attention_kernel::fused)
      fused(to);
    else
      plain(to);
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
    if (model.attention == attention_kernel::fused)
      fused_back(to, d_context);
    else
      plain_back(to, d_context);
    qkv_.backward_input(to, d_norm);
    if (weights_too) qkv_.backward_weight(to);
    return to.norm_back(input_, d_norm, gradient, !weights_too && d_attended_ == gradient);
  }
  constexpr void backward_weight(transformer_ops& to) const {
    projection_weights(to, to.gathered(d_attended_));
    qkv_.backward_weight(to);
  }

 private:
  static constexpr op_work projected(const transformer_ops& to) {
    return to.linear(to.model().context_width());
  }
  //! Of a score for every key, of all the rank's heads; and its mask's bytes.
  static constexpr std::int64_t scores(const transformer_ops& to) {
    return to.model().heads * to.model().seen() * to.rows() / to.shards();
  }
  static constexpr std::int64_t score_bytes(const transformer_ops& to) {
    return scores(to) * to.model().bytes.activation;
  }

  constexpr void plain(transformer_ops& to) {
    const std::int64_t bytes = score_bytes(to);
    const std::int32_t raw = to.buffer_by_heads("scores", bytes);
    dropped_ = softmax_ = to.out().view("softmax", raw);
    to.add("scores", {reads(qkv_.q), reads(qkv_.k), writes(raw)}, of_scores(to, 1),
           pieces_of::result);
    soften(to, "softmax", {reads(raw), writes(softmax_)}, 2 * bytes);
    if (to.dropout()) {
      mask_ = to.buffer_by_heads("attention mask", scores(to));
      dropped_ = to.buffer_by_heads("dropped softmax", bytes);
      soften(to, "attention dropout", {reads(softmax_), writes(dropped_), writes(mask_)},
             2 * bytes + scores(to));
    }
    to.add("context", {reads(dropped_), reads(qkv_.v), writes(context_)}, of_values(to, 1),
           pieces_of::result);
  }
  constexpr void plain_back(transformer_ops& to, std::int32_t d_context) {
    const std::int64_t bytes = score_bytes(to);
    const std::int32_t d_scores = to.buffer_by_heads("scores gradient", bytes);
    to.add("context back",
           {reads(d_context), reads(dropped_), reads(qkv_.v), writes(d_scores), writes(qkv_.d_v)},
           of_values(to, 2), pieces_of::result);
    if (to.dropout())
      soften(to, "attention dropout back", {reads(mask_), reads(d_scores), writes(d_scores)},
             2 * bytes + scores(to));
    soften(to, "softmax back", {reads(softmax_), reads(d_scores), writes(d_scores)}, 3 * bytes);
    to.add("scores back",
           {reads(d_scores), reads(qkv_.q), reads(qkv_.k), writes(qkv_.d_q), writes(qkv_.d_k)},
           of_scores(to, 2), pieces_of::result);
  }
  //! What is done to scores: by heads, each of which needs all rows.
  static constexpr void soften(transformer_ops& to, std::string_view name,
                               std::initializer_list<op_use> touched, std::int64_t bytes) {
    to.add(name, touched, to.moved(bytes), pieces_of::result);
  }
  //! So many products of scores with queries' or keys' width; and with values'.
  static constexpr op_work of_scores(const transformer_ops& to, int products) {
    return products_of(to, products, to.model().query_width(), to.model().key_width());
  }
  static constexpr op_work of_values(const transformer_ops& to, int products) {
    return products_of(to, products, to.model().context_width(), to.model().value_width());
  }
  static constexpr op_work products_of(const transformer_ops& to, int products,
                                       std::int64_t width, std::int64_t of_keys) {
    const transformer& model = to.model();
    const std::int64_t read = to.share(width) + bytes_of(to, model.seen(), of_keys);
    return {products * 2 * to.rows() * model.seen() * (width / to.shards()),
            products * (score_bytes(to) + read),
            0,
            {model.length(), width / model.heads, model.seen()},
            products * model.microbatch * model.heads / to.shards()};
  }

  //! Dropout needs no mask: what was dropped is drawn again.
  constexpr void fused(transformer_ops& to) {
    const std::int64_t touched =
        to.share(to.model().query_width()) + to.share(to.model().context_width());
    sums_ = to.buffer_by_heads("sums of rows", sum_bytes(to));
    to.add("attention",
           {reads(qkv_.q), reads(qkv_.k), reads(qkv_.v), writes(context_), writes(sums_)},
           in_one(to, 1, 1, touched + read_kv(to) + sum_bytes(to)), pieces_of::result);
  }
  constexpr void fused_back(transformer_ops& to, std::int32_t d_context) {
    const transformer& model = to.model();
    const std::int64_t share = to.share(model.query_width());
    const std::int64_t touched = 2 * share + 2 * to.share(model.context_width());
    // All blocks of keys add to a query's gradient, in single precision.
    const std::int64_t wide = share / model.bytes.activation * 4;
    const std::int32_t collected = to.buffer_by_heads("queries gradient, collected", wide);
    const std::int32_t products = to.buffer_by_heads("products of rows", sum_bytes(to));
    to.add("attention back",
           {reads(d_context), reads(qkv_.q), reads(qkv_.k), reads(qkv_.v), reads(context_),
            reads(sums_), writes(collected), writes(products), writes(qkv_.d_q), writes(qkv_.d_k),
            writes(qkv_.d_v)},
           in_one(to, 3, 2, touched + 2 * read_kv(to) + 2 * wide + 3 * sum_bytes(to)),
           pieces_of::result);
  }
  //! The rank's share of the keys, or values, of so many tokens of each sequence.
  static constexpr std::int64_t bytes_of(const transformer_ops& to, std::int64_t tokens,
                                         std::int64_t width) {
    return tokens * to.model().microbatch * width * to.model().bytes.activation / to.shards();
  }
  //! Keys and values that a slice reads: its own, and those before, as far as a window reaches; of
  //! equal ones the mean.
  constexpr std::int64_t read_kv(const transformer_ops& to) const {
    const transformer& model = to.model();
    const std::int64_t width = model.key_width() + model.value_width();
    const auto reach = [&](std::int64_t begin) {
      return windowed_ && model.window < begin ? model.window : begin;
    };
    if (model.slice.end > 0) return bytes_of(to, model.length() + reach(model.slice.begin), width);
    std::int64_t all = 0;
    for (int slice = 0; slice < model.slices; ++slice)
      all += model.length() + reach(slice * model.length());
    return bytes_of(to, all, width) / model.slices;
  }
  //! Products of scores and of values in one. On the average half of the scores are masked, and
  //! skipped. Where heads' widths differ their mean is the products' inner size.
  constexpr op_work in_one(const transformer_ops& to, int of_scores, int of_values,
                           std::int64_t bytes) const {
    const transformer& model = to.model();
    const std::int64_t keys = model.attends_twice(windowed_);
    const std::int64_t width =
        of_scores * model.query_width() + of_values * model.context_width();
    const std::int64_t products = of_scores + of_values;
    return {to.rows() * keys * (width / to.shards()),
            bytes,
            0,
            {model.length(), (width / model.heads + products - 1) / products,
             (keys + 1) / 2},
            products * model.microbatch * model.heads / to.shards()};
  }
  //! A number in single precision for each row and head.
  static constexpr std::int64_t sum_bytes(const transformer_ops& to) {
    return 4 * to.model().heads * to.rows() / to.shards();
  }

  //! @param gradient  all rows of the product's
  constexpr void projection_weights(transformer_ops& to, std::int32_t gradient) const {
    to.weights("projection weights", {reads(context_), reads(gradient)}, projected(to));
  }

  transformer_qkv qkv_;
  bool windowed_ = false;
  std::int32_t input_ = -1;
  std::int32_t softmax_ = -1, mask_ = -1, dropped_ = -1, sums_ = -1;
  std::int32_t context_ = -1, attended_mask_ = -1, d_attended_ = -1;
};

}  // namespace stretto
