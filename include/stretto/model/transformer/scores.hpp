#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "stretto/model/transformer/context.hpp"
#include "stretto/model/transformer/ops.hpp"

namespace stretto {

//! From queries, keys and values to the context and back by attention_kernel::plain: scores of all
//! pairs, of which the softmax and what dropout leaves of it are kept. They have room for the keys
//! that a given slice sees; of equal ones, for as many as the last has.
class transformer_scores {
 public:
  //! @param all  keys and values that are attended to
  constexpr void forward(transformer_ops& to, std::int32_t queries, const keys_and_values& all,
                         std::int32_t context) {
    const std::int64_t bytes = score_bytes(to);
    const std::int32_t raw = to.buffer_by_heads("scores", bytes);
    dropped_ = softmax_ = to.out().view("softmax", raw);
    to.add("scores", {reads(queries), reads(all.k), writes(raw)}, of_scores(to, 1),
           pieces_of::result);
    soften(to, "softmax", {reads(raw), writes(softmax_)}, 2 * bytes);
    if (to.dropout()) {
      mask_ = to.buffer_by_heads("attention mask", scores(to));
      dropped_ = to.buffer_by_heads("dropped softmax", bytes);
      soften(to, "attention dropout", {reads(softmax_), writes(dropped_), writes(mask_)},
             2 * bytes + scores(to));
    }
    to.add("context", {reads(dropped_), reads(all.v), writes(context)}, of_values(to, 1),
           pieces_of::result);
  }
  //! @param gradients  of all keys and values
  constexpr void backward(transformer_ops& to, std::int32_t queries, const keys_and_values& all,
                          std::int32_t d_queries, const keys_and_values& gradients,
                          std::int32_t d_context) const {
    const std::int64_t bytes = score_bytes(to);
    const std::int32_t d_scores = to.buffer_by_heads("scores gradient", bytes);
    to.add("context back",
           {reads(d_context), reads(dropped_), reads(all.v), writes(d_scores), writes(gradients.v)},
           of_values(to, 2), pieces_of::result);
    if (to.dropout())
      soften(to, "attention dropout back", {reads(mask_), reads(d_scores), writes(d_scores)},
             2 * bytes + scores(to));
    soften(to, "softmax back", {reads(softmax_), reads(d_scores), writes(d_scores)}, 3 * bytes);
    to.add("scores back",
           {reads(d_scores), reads(queries), reads(all.k), writes(d_queries), writes(gradients.k)},
           of_scores(to, 2), pieces_of::result);
  }

 private:
  //! Of a score for every key, of all the rank's heads; and its mask's bytes.
  static constexpr std::int64_t scores(const transformer_ops& to) {
    return to.model().heads * to.model().seen() * to.rows() / to.shards();
  }
  static constexpr std::int64_t score_bytes(const transformer_ops& to) {
    return scores(to) * to.model().bytes.activation;
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
    const std::int64_t read =
        to.share(width) +
        model.seen() * model.microbatch * of_keys * model.bytes.activation / to.shards();
    return {products * 2 * to.rows() * model.seen() * (width / to.shards()),
            products * (score_bytes(to) + read),
            0,
            {model.attends_at_once(), width / model.heads, model.seen()},
            products * model.microbatch * model.heads_at_once() / to.shards()};
  }

  std::int32_t softmax_ = -1, mask_ = -1, dropped_ = -1;
};

}  // namespace stretto
