// Causal multi-head attention between the projections: scores, softmax, weighted sum. Internal.
#pragma once

#include "model/algebra.hpp"
#include "model/config.hpp"

namespace train {

//! The sizes and the addressing of one micro-batch's attention.
//! `joint` is [rows, 3 * width]: queries, keys, values side by side, heads side by side in each.
struct attention_shape {
  std::size_t context, width, heads, sequences;

  explicit attention_shape(const config& model)
      : context(config::size(model.context)),
        width(config::size(model.width)),
        heads(config::size(model.heads)),
        sequences(config::size(model.microbatch)) {}

  std::size_t features() const { return width / heads; }
  std::size_t weights() const { return sequences * heads * context * context; }

  //! Part 0, 1 or 2 (queries, keys, values) of one head of one sequence: [context, features].
  template <class Scalar>
  matrix_view<Scalar> part(Scalar* joint, std::size_t which, std::size_t sequence,
                           std::size_t head) const {
    return matrix(joint + sequence * context * 3 * width + which * width + head * features(),
                  context, features(), 3 * width);
  }
  //! One head of one sequence of a [rows, width] matrix: [context, features].
  template <class Scalar>
  matrix_view<Scalar> of_head(Scalar* rows, std::size_t sequence, std::size_t head) const {
    return matrix(rows + sequence * context * width + head * features(), context, features(),
                  width);
  }
  //! The attention weights of one head of one sequence: [context, context].
  template <class Scalar>
  matrix_view<Scalar> square(Scalar* weights, std::size_t sequence, std::size_t head) const {
    return matrix(weights + (sequence * heads + head) * context * context, context, context);
  }
  template <class Scalar>
  Scalar scale() const {
    return Scalar(1) / std::sqrt(static_cast<Scalar>(features()));
  }
};

//! weights = softmax(scale * queries * keys^T) over the past, mixed = weights * values.
template <class Scalar>
void attention_forward(const attention_shape& shape, const Scalar* joint, Scalar* weights,
                       Scalar* mixed, std::uint64_t& multiply_adds) {
  const Scalar scale = shape.template scale<Scalar>();
  for (std::size_t sequence = 0; sequence < shape.sequences; ++sequence) {
    for (std::size_t head = 0; head < shape.heads; ++head) {
      auto square = shape.square(weights, sequence, head);
      assign_product(square, shape.part(joint, 0, sequence, head),
                     shape.part(joint, 1, sequence, head).transpose(), multiply_adds);
      for (Eigen::Index row = 0; row < square.rows(); ++row) {
        auto past = square.row(row).head(row + 1).array();
        const Scalar highest = past.maxCoeff();
        past = ((past - highest) * scale).exp();
        past *= Scalar(1) / past.sum();
        square.row(row).tail(square.cols() - row - 1).setZero();
      }
      assign_product(shape.of_head(mixed, sequence, head), square,
                     shape.part(joint, 2, sequence, head), multiply_adds);
    }
  }
}

//! The gradient of `joint` from the gradient of `mixed`; `scratch` is [context, context].
template <class Scalar>
void attention_backward(const attention_shape& shape, const Scalar* joint, const Scalar* weights,
                        const Scalar* mixed_gradient, Scalar* scratch, Scalar* joint_gradient,
                        std::uint64_t& multiply_adds) {
  const Scalar scale = shape.template scale<Scalar>();
  auto scores = matrix(scratch, shape.context, shape.context);
  for (std::size_t sequence = 0; sequence < shape.sequences; ++sequence) {
    for (std::size_t head = 0; head < shape.heads; ++head) {
      const auto square = shape.square(weights, sequence, head);
      const auto gradient = shape.of_head(mixed_gradient, sequence, head);
      assign_product(scores, gradient, shape.part(joint, 2, sequence, head).transpose(),
                     multiply_adds);
      assign_product(shape.part(joint_gradient, 2, sequence, head), square.transpose(), gradient,
                     multiply_adds);
      for (Eigen::Index row = 0; row < square.rows(); ++row) {
        auto past = scores.row(row).head(row + 1).array();
        const auto weight = square.row(row).head(row + 1).array();
        const Scalar along = (past * weight).sum();
        past = weight * (past - along) * scale;
        scores.row(row).tail(square.cols() - row - 1).setZero();
      }
      assign_product(shape.part(joint_gradient, 0, sequence, head), scores,
                     shape.part(joint, 1, sequence, head), multiply_adds);
      assign_product(shape.part(joint_gradient, 1, sequence, head), scores.transpose(),
                     shape.part(joint, 0, sequence, head), multiply_adds);
    }
  }
}

}  // namespace train
