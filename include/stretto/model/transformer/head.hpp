#pragma once

#include <cstdint>

#include "stretto/model/transformer/ops.hpp"

namespace stretto {

//! What goes with the activation from one piece of the head to the next, and back with its
//! gradient.
struct transformer_message {
  std::int32_t rows = -1;  //!< the activation, or its gradient
  std::int32_t sums = -1;  //!< see transformer_head::sum_bytes; -1: there are none yet
};

//! The head, or consecutive pieces of it that are on one stage: the last norm, the product with the
//! vocabulary and the loss, its ops and what they keep. Pieces share the softmax's sums as they go
//! along (Milakov and Gimelshein 2018, "Online normalizer calculation for softmax"), and the
//! gradient as it comes back; that each may be on a rank of its own is what Yeung et al. 2024
//! ("Balancing Pipeline Parallelism with Vocabulary Parallelism") reach by collectives of all
//! ranks.
class transformer_head {
 public:
  //! @param first  the first of the pieces
  //! @param count  how many there are; whose last leaves no other behind it has the loss
  constexpr transformer_head(const transformer_ops& to, std::int64_t first, std::int64_t count)
      : norms_(first == 0),
        ends_(first + count == to.model().head_pieces),
        columns_(to.model().vocabulary / to.shards() / to.model().head_pieces * count) {}

  //! Of each row its largest logit, the sum of exponentials, and its target's logit, in single
  //! precision, in every rank that shares the head.
  static constexpr std::int64_t sum_bytes(const transformer_ops& to) { return 12 * to.rows(); }

  //! @return what the next piece takes; nothing of use behind the last
  constexpr transformer_message forward(transformer_ops& to, const transformer_message& from) {
    input_ = from.rows;
    normed_ = to.buffer("head norm", to.row());
    logits_ = to.buffer("logits", logit_bytes(to));
    if (norms_)
      to.norm(input_, normed_, to.row());
    else  // what came is given back before the weights' gradients are made
      to.add("keep", {reads(input_), writes(normed_)}, to.moved(2 * to.row()));
    const std::int32_t norm = gathered(to);
    to.add("logits", {reads(norm), writes(logits_)}, product(to, to.model().bytes.weight));
    if (norms_ && ends_) {
      whole_loss(to);
      return {};
    }
    sum_up(to, from.sums);
    if (ends_) {
      loss(to);
      return {};
    }
    const std::int32_t output = to.buffer("head output", to.row());
    to.add("pass on", {reads(normed_), writes(output)}, to.moved(2 * to.row()));
    return {output, sums_};
  }

  //! @param from  what the next piece sends back; nothing for the last
  //! @return what the piece before takes, or the layer
  constexpr transformer_message backward_input(transformer_ops& to,
                                               const transformer_message& from) {
    transformer_message back = from;
    if (!ends_) {
      sums_ = from.sums;
      loss(to);
    }
    if (ends_) {
      back.rows = to.buffer("head gradient", to.row());
      to.product("logits back", "head gradient", {reads(logits_)}, back.rows,
                 product(to, to.model().bytes.weight));
    } else if (to.shards() == 1) {
      op_work adds = product(to, to.model().bytes.weight);
      adds.bytes += to.full_row();
      to.add("logits back", {reads(logits_), reads(back.rows), writes(back.rows)}, adds);
    } else {
      const std::int32_t made = to.buffer("head gradient", to.row());
      to.product("logits back", "head gradient", {reads(logits_)}, made,
                 product(to, to.model().bytes.weight));
      to.add("add gradient", {reads(made), reads(back.rows), writes(back.rows)},
             to.moved(3 * to.row()));
    }
    if (norms_)
      to.add("norm back", {reads(input_), reads(back.rows), writes(back.rows)},
             to.moved(3 * to.row()));
    if (ends_ && !norms_) {
      back.sums = to.buffer("row sums back", sum_bytes(to));
      to.add("sums back", {reads(sums_), writes(back.sums)}, to.moved(2 * sum_bytes(to)));
    }
    return back;
  }
  constexpr void backward_weight(transformer_ops& to) const {
    const std::int32_t norm = gathered(to);
    to.weights("logits weights", {reads(norm), reads(logits_)}, product(to, to.gradient_bytes()));
  }

 private:
  constexpr std::int32_t gathered(transformer_ops& to) const {
    return to.gathered("gather", normed_, to.model().hidden, to.model().bytes.activation);
  }
  //! In single precision for the loss.
  constexpr std::int64_t logit_bytes(const transformer_ops& to) const {
    return to.rows() * columns_ * 4;
  }
  //! @param each  bytes for one of the matrix' numbers
  constexpr op_work product(const transformer_ops& to, std::int64_t each) const {
    const transformer& model = to.model();
    return {2 * to.rows() * columns_ * model.hidden,
            to.full_row() + logit_bytes(to) + columns_ * model.hidden * each,
            0,
            {to.rows(), model.hidden, columns_}};
  }
  //! The loss turns the logits into their gradient, in place.
  constexpr void whole_loss(transformer_ops& to) {
    const std::int64_t t = to.shards();
    if (t == 1) {
      to.add("loss", {reads(logits_), writes(logits_)}, to.moved(2 * logit_bytes(to)));
      return;
    }
    sums_ = to.buffer("row sums", 8 * to.rows());
    to.collective("row sums", {reads(logits_), writes(sums_)}, 16 * to.rows() * (t - 1) / t,
                  pieces_of::rows);
    loss(to);
  }
  constexpr void loss(transformer_ops& to) const {
    to.add("loss", {reads(logits_), reads(sums_), writes(logits_)}, to.moved(2 * logit_bytes(to)));
  }
  //! @param before  those of the pieces before; -1: there are none
  constexpr void sum_up(transformer_ops& to, std::int32_t before) {
    const std::int64_t t = to.shards();
    sums_ = to.buffer("row sums", sum_bytes(to));
    const op_work work = to.moved(logit_bytes(to) + sum_bytes(to));
    if (t == 1 && before >= 0) {
      to.add("row sums", {reads(logits_), reads(before), writes(sums_)}, work);
      return;
    }
    to.add("row sums", {reads(logits_), writes(sums_)}, work);
    if (t == 1) return;
    to.collective("row sums", {reads(sums_), writes(sums_)}, 2 * sum_bytes(to) * (t - 1) / t,
                  pieces_of::rows);
    if (before >= 0)
      to.add("add row sums", {reads(before), reads(sums_), writes(sums_)},
             to.moved(3 * sum_bytes(to)));
  }

  bool norms_, ends_;
  std::int64_t columns_;
  std::int32_t input_ = -1, normed_ = -1, logits_ = -1, sums_ = -1;
};

}  // namespace stretto
