// Causal multi-head attention between the projections: scores, softmax, weighted sum. Internal.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>

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
  held_matrix<Scalar> back() const { return own; }
  held_matrix<Scalar> operator[](std::size_t slice) const {
    return slice < earlier.size() ? own.in(&earlier[slice][offset]) : own;
  }
};

//! The sizes and the addressing of the attention of one slice of a micro-batch, which sees itself
//! and the slices before it. Of a shard, `width` and `heads` are what it has.
//! `joint` is [rows, 3 * width]: queries, keys, values side by side, heads side by side in each.
struct attention_shape {
  std::size_t length, context, width, heads, sequences;

  explicit attention_shape(const config& model)
      : length(model.length()),
        context(config::size(model.context)),
        width(model.share()),
        heads(config::size(model.heads) / config::size(model.shards)),
        sequences(config::size(model.microbatch)) {}

  std::size_t features() const { return width / heads; }
  //! Rows of the attention weights, of `context` columns.
  std::size_t squares() const { return sequences * heads * length; }

  //! Part 0, 1 or 2 (queries, keys, values) of one head of one sequence: [length, features].
  template <class Scalar>
  held_matrix<Scalar> part(const held_matrix<Scalar>& joint, std::size_t which,
                           std::size_t sequence, std::size_t head) const {
    return joint.block(sequence * length, which * width + head * features(), length, features());
  }
  //! One head of one sequence of a [rows, width] matrix: [length, features].
  template <class Scalar>
  held_matrix<Scalar> of_head(const held_matrix<Scalar>& rows, std::size_t sequence,
                              std::size_t head) const {
    return rows.block(sequence * length, head * features(), length, features());
  }
  //! The attention weights of one head of one sequence: [length, context].
  template <class Scalar>
  held_matrix<Scalar> square(const held_matrix<Scalar>& weights, std::size_t sequence,
                             std::size_t head) const {
    return weights.rows_from((sequence * heads + head) * length, length);
  }
  template <class Scalar>
  Scalar scale() const {
    return Scalar(1) / std::sqrt(static_cast<Scalar>(features()));
  }
};

//! weights = softmax(scale * queries * keys^T) over the past, mixed = weights * values.
//! \param joints  of every slice up to this one, which is the last
template <class Scalar>
void attention_forward(const counted_math<Scalar>& with, const attention_shape& shape,
                       const slices_of<Scalar>& joints, const held_matrix<Scalar>& weights,
                       const held_matrix<Scalar>& mixed) {
  const std::size_t length = shape.length, before = length * (joints.size() - 1);
  for (std::size_t sequence = 0; sequence < shape.sequences; ++sequence) {
    for (std::size_t head = 0; head < shape.heads; ++head) {
      const auto square = shape.square(weights, sequence, head);
      const auto queries = shape.part(joints.back(), 0, sequence, head);
      const auto scores = with.place(square, 0);
      for (std::size_t slice = 0; slice < joints.size(); ++slice)
        with.product(scores.columns_from(slice * length, length), queries,
                     transposed(shape.part(joints[slice], 1, sequence, head)));
      with->softmax(scores, before, shape.scale<Scalar>());
      with.keep(scores, square);
      const auto result = shape.of_head(mixed, sequence, head);
      const auto sum = with.place(result, 1);
      for (std::size_t slice = 0; slice < joints.size(); ++slice)
        with.product(sum, square.columns_from(slice * length, length),
                     shape.part(joints[slice], 2, sequence, head), slice > 0);
      with.keep(sum, result);
    }
  }
}

//! The gradients of the queries, and what this slice adds to those of the keys and values up to it,
//! from the gradient of `mixed`; `scratch` is [length, context].
//! \param joint_gradients  of every slice up to this one, which is the last
//! \param first            nothing has been added to them yet: they are set
template <class Scalar>
void attention_backward(const counted_math<Scalar>& with, const attention_shape& shape,
                        const slices_of<Scalar>& joints,
                        const held_matrix<const Scalar>& weights,
                        const held_matrix<const Scalar>& mixed_gradient, Scalar* scratch,
                        const slices_of<Scalar>& joint_gradients, bool first) {
  const std::size_t length = shape.length, before = length * (joints.size() - 1);
  const matrix_span<Scalar> scores(scratch, length, shape.context);
  for (std::size_t sequence = 0; sequence < shape.sequences; ++sequence) {
    for (std::size_t head = 0; head < shape.heads; ++head) {
      const auto square = shape.square(weights, sequence, head);
      const auto gradient = shape.of_head(mixed_gradient, sequence, head);
      for (std::size_t slice = 0; slice < joints.size(); ++slice) {
        with.product(scores.columns_from(slice * length, length), gradient,
                     transposed(shape.part(joints[slice], 2, sequence, head)));
        with.product(shape.part(joint_gradients[slice], 2, sequence, head),
                     transposed(square.columns_from(slice * length, length)), gradient, !first);
      }
      with->softmax_back(scores, with.read(square, 1), before, shape.scale<Scalar>());
      const auto queries = shape.part(joint_gradients.back(), 0, sequence, head);
      const auto sum = with.place(queries, 2);
      for (std::size_t slice = 0; slice < joints.size(); ++slice) {
        const auto own = scores.columns_from(slice * length, length);
        with.product(sum, own, shape.part(joints[slice], 1, sequence, head), slice > 0);
        with.product(shape.part(joint_gradients[slice], 1, sequence, head), transposed(own),
                     shape.part(joints.back(), 0, sequence, head), !first);
      }
      with.keep(sum, queries);
    }
  }
}

}  // namespace train
