// Causal multi-head attention between the projections: scores, softmax, weighted sum. Internal.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include "model/config.hpp"
#include "model/counted_math.hpp"
#include "model/matrix.hpp"
#include "model/tensor.hpp"

namespace train {

//! One tensor of a block's stash in every slice of a micro-batch up to some slice, the last.
template <class Scalar>
struct slices_of {
  held_matrix<Scalar> own;
  std::span<const std::span<Scalar>> earlier{};  //!< the whole stashes
  std::size_t offset = 0;                        //!< of the tensor in them

  std::size_t size() const { return earlier.size() + 1; }
  held_matrix<Scalar> operator[](std::size_t slice) const {
    return slice < earlier.size() ? own.in(&earlier[slice][offset]) : own;
  }
};

//! The sizes and the addressing of the attention of one slice of a micro-batch, which sees itself
//! and the slices before it. Of a shard, `width` and `heads` are what it has. Refers to the model.
//! `joint` is [rows, 3 * width]: queries, keys, values side by side, heads side by side in each.
struct attention_shape {
  sequence_cut cut;
  std::size_t length, before;  //!< tokens of the slice, and of those before it
  std::size_t context, width, heads, sequences;

  explicit attention_shape(const config& model, std::size_t slice = 0)
      : cut(model.cut()),
        length(cut.length(slice)),
        before(cut.begin(slice)),
        context(config::size(model.context)),
        width(model.share()),
        heads(config::size(model.heads) / config::size(model.shards)),
        sequences(config::size(model.microbatch)) {}

  std::size_t features() const { return width / heads; }
  //! Rows of the attention weights, of `context` columns.
  std::size_t squares() const { return sequences * heads * length; }

  //! Part 0, 1 or 2 (queries, keys, values) of heads of one sequence of a slice:
  //! [its length, count * features].
  template <class Scalar>
  held_matrix<Scalar> part(const slices_of<Scalar>& joints, std::size_t slice, std::size_t which,
                           std::size_t sequence, std::size_t head, std::size_t count = 1) const {
    const std::size_t rows = cut.length(slice);
    return joints[slice].block(sequence * rows, which * width + head * features(), rows,
                               count * features());
  }
  //! What of some squares' columns a slice has.
  template <class Matrix>
  Matrix columns_of(const Matrix& squares, std::size_t slice) const {
    return squares.columns_from(cut.begin(slice), cut.length(slice));
  }
  //! Heads of one sequence of a [rows, width] matrix: [length, count * features].
  template <class Scalar>
  held_matrix<Scalar> of_heads(const held_matrix<Scalar>& rows, std::size_t sequence,
                               std::size_t head, std::size_t count = 1) const {
    return rows.block(sequence * length, head * features(), length, count * features());
  }
  //! The attention weights of heads of one sequence: [count * length, context].
  template <class Scalar>
  held_matrix<Scalar> squares(const held_matrix<Scalar>& weights, std::size_t sequence,
                              std::size_t head, std::size_t count = 1) const {
    return weights.rows_from((sequence * heads + head) * length, count * length);
  }
  //! Products for so many heads, whose squares lie one below the other and all else side by side:
  //! those that make squares, and those that read them on their left.
  product_batch to_squares(std::size_t count) const {
    return {count, length * context, features(), features()};
  }
  product_batch from_squares(std::size_t count) const {
    return {count, features(), length * context, features()};
  }
  template <class Scalar>
  Scalar scale() const {
    return Scalar(1) / std::sqrt(static_cast<Scalar>(features()));
  }
};

//! How many heads of a sequence are done at once.
template <class Scalar>
std::size_t heads_at_once(const counted_math<Scalar>& with, const attention_shape& shape) {
  return with->batches() ? shape.heads : 1;
}

//! weights = softmax(scale * queries * keys^T) over the past, mixed = weights * values.
//! \param joints  of every slice up to this one, which is the last
template <class Scalar>
void attention_forward(const counted_math<Scalar>& with, const attention_shape& shape,
                       const slices_of<Scalar>& joints, const held_matrix<Scalar>& weights,
                       const held_matrix<Scalar>& mixed) {
  const std::size_t length = shape.length, last = joints.size() - 1;
  const std::size_t count = heads_at_once(with, shape);
  for (std::size_t sequence = 0; sequence < shape.sequences; ++sequence) {
    for (std::size_t head = 0; head < shape.heads; head += count) {
      const auto squares = shape.squares(weights, sequence, head, count);
      const auto queries = shape.part(joints, last, 0, sequence, head);
      const auto scores = with.place(squares);
      for (std::size_t slice = 0; slice < joints.size(); ++slice)
        with.product(shape.columns_of(scores.rows_from(0, length), slice), queries,
                     transposed(shape.part(joints, slice, 1, sequence, head)), false,
                     shape.to_squares(count));
      with->softmax(scores, length, shape.before, shape.scale<Scalar>(), squares);
      const auto of_slice = squares.rows_from(0, length);
      with.products(shape.of_heads(mixed, sequence, head, count), joints.size(),
                    shape.from_squares(count), [&](std::size_t slice) {
                      return std::pair<factor<Scalar>, factor<Scalar>>(
                          shape.columns_of(of_slice, slice),
                          shape.part(joints, slice, 2, sequence, head));
                    });
    }
  }
}

//! The gradients of the queries, and what this slice adds to those of the keys and values up to it,
//! from the gradient of `mixed`; `scratch` is [length, context], where heads are done one by one.
//! \param joint_gradients  of every slice up to this one, which is the last
//! \param first            nothing has been added to them yet: they are set
template <class Scalar>
void attention_backward(const counted_math<Scalar>& with, const attention_shape& shape,
                        const slices_of<Scalar>& joints,
                        const held_matrix<const Scalar>& weights,
                        const held_matrix<const Scalar>& mixed_gradient, Scalar* scratch,
                        const slices_of<Scalar>& joint_gradients, bool first) {
  const std::size_t length = shape.length, last = joints.size() - 1;
  const std::size_t count = heads_at_once(with, shape);
  // The gradients of the scores of several heads are made in room 0.
  const bool in_room = with->batches();
  if (in_room) check_scratch(count * length * shape.context, with->room(0).size());
  const matrix_span<Scalar> all_scores(in_room ? with->room(0).data() : scratch, count * length,
                                       shape.context);
  const auto scores = all_scores.rows_from(0, length);
  const bool rounds = joints.own.in_bf16();
  if (rounds) check_scratch(count * length * shape.context, 2 * with->room(1).size());
  const held_matrix<Scalar> all_gradients(rounds ? with->room(1).data() : all_scores.data, rounds,
                                          count * length, shape.context);
  const auto of_slice = all_gradients.rows_from(0, length);
  for (std::size_t sequence = 0; sequence < shape.sequences; ++sequence) {
    for (std::size_t head = 0; head < shape.heads; head += count) {
      const auto squares = shape.squares(weights, sequence, head, count);
      const auto gradient = shape.of_heads(mixed_gradient, sequence, head);
      for (std::size_t slice = 0; slice < joints.size(); ++slice) {
        with.product(shape.columns_of(scores, slice), gradient,
                     transposed(shape.part(joints, slice, 2, sequence, head)), false,
                     shape.to_squares(count));
        with.product(shape.part(joint_gradients, slice, 2, sequence, head, count),
                     transposed(shape.columns_of(squares.rows_from(0, length), slice)), gradient,
                     !first, shape.from_squares(count));
      }
      with->softmax_back(all_scores, squares, length, shape.before, shape.scale<Scalar>(),
                         all_gradients);
      const auto to_own = [&](std::size_t slice) { return shape.columns_of(of_slice, slice); };
      with.products(shape.part(joint_gradients, last, 0, sequence, head, count), joints.size(),
                    shape.from_squares(count), [&](std::size_t slice) {
                      return std::pair<factor<Scalar>, factor<Scalar>>(
                          to_own(slice), shape.part(joints, slice, 1, sequence, head));
                    });
      for (std::size_t slice = 0; slice < joints.size(); ++slice)
        with.product(shape.part(joint_gradients, slice, 1, sequence, head, count),
                     transposed(to_own(slice)), shape.part(joints, last, 0, sequence, head), !first,
                     shape.from_squares(count));
    }
  }
}

}  // namespace train
