#pragma once

#include <cstdint>

#include "stretto/model/transformer/ops.hpp"

namespace stretto {

//! Where the layer begins that foretells a token further ahead: of what the layer before it has
//! made, and of the embedding of the token between, both normed, a product makes what it takes
//! (DeepSeek-AI 2024, arXiv 2412.19437, section 2.2). The layer and the head behind it are as any
//! others.
class transformer_further {
 public:
  //! @param rows  what the layer before has made
  //! @return what the layer takes
  constexpr std::int32_t forward(transformer_ops& to, std::int32_t rows) {
    const std::int64_t h = to.model().hidden;
    rows_ = rows;
    embedded_ = to.buffer("further embedded", to.row());
    joined_ = to.buffer("joined", 2 * to.operand_row());
    const std::int32_t input = to.buffer("further input", to.row());
    to.product("embed", "embedding", {}, embedded_, {0, 2 * to.full_row()});
    to.norm(rows_, joined_, to.operand_row());
    to.norm(embedded_, joined_, to.operand_row());
    const std::int32_t all = to.gathered("gather", joined_, 2 * h);
    to.product("join", "join", {reads(all)}, input, to.matrix(2 * h, h, columns));
    return input;
  }
  //! @param gradient  of what the layer takes
  //! @return the gradient of what the layer before has made
  constexpr std::int32_t backward_input(transformer_ops& to, std::int32_t gradient,
                                        bool weights_too) {
    const std::int64_t h = to.model().hidden;
    d_input_ = to.operand(gradient, to.row());
    const std::int32_t d_joined = to.buffer("joined gradient", 2 * to.row());
    const std::int32_t d_rows = to.buffer("further rows gradient", to.row());
    d_embedded_ = to.buffer("further embedded gradient", to.row());
    const std::int32_t all = to.gathered(d_input_);
    to.product("join back", "joined gradient", {reads(all)}, d_joined,
               to.matrix(2 * h, h, inner), 2 * h);
    if (weights_too) join_weights(to, all);
    to.add("norm back", {reads(rows_), reads(d_joined), writes(d_rows)}, to.moved(3 * to.row()));
    to.add("norm back", {reads(embedded_), reads(d_joined), writes(d_embedded_)},
           to.moved(3 * to.row()));
    if (weights_too) embed_weights(to);
    return d_rows;
  }
  constexpr void backward_weight(transformer_ops& to) const {
    join_weights(to, to.gathered(d_input_));
    embed_weights(to);
  }

 private:
  using enum made_by_product;

  //! @param gradient  all rows of the product's
  constexpr void join_weights(transformer_ops& to, std::int32_t gradient) const {
    const std::int64_t h = to.model().hidden;
    const std::int32_t all = to.gathered("gather", joined_, 2 * h);
    to.weights("join weights", {reads(all), reads(gradient)}, to.matrix(2 * h, h, matrix));
  }
  constexpr void embed_weights(transformer_ops& to) const {
    to.add("embed weights", {reads(d_embedded_)}, to.moved(3 * to.row()), pieces_of::whole);
  }

  std::int32_t rows_ = -1, embedded_ = -1, joined_ = -1;
  std::int32_t d_input_ = -1, d_embedded_ = -1;
};

}  // namespace stretto
