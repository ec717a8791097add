// Layer L + 1: final norm, projection onto the vocabulary, softmax cross-entropy; or a piece of
// that, one of several layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/config.hpp"
#include "model/counted_math.hpp"
#include "model/tensor.hpp"

namespace train {

//! The logits of one row of a forward, where they go before the loss makes room of them for their
//! gradient.
template <class Scalar>
struct row_logits {
  std::size_t row = 0;
  Scalar* to = nullptr;  //!< [vocabulary], of which a piece sets its own; null: nobody asks
};

//! The head, or a piece of it. Stateless: parameters, gradients, activations and stash are the
//! caller's. The projection is a table [vocabulary, width]; a tied head has its own copy of the
//! embedding's table and its own gradient for it, see stage.hpp for how the two stay equal.
//!
//! Of several pieces each has its rows of the table. The first has the norm, whose result all hand
//! on, with each row's largest logit, sum of exponentials and target's logit so far (sums_of_row).
//! The last finds the loss, and hands back what makes logits their gradient: of each row the
//! largest, and what exponentials and the target's 1 are multiplied by. With that goes the gradient
//! of the norm's result so far. Sums of a row then group their terms by pieces: results agree with
//! a whole head's to rounding.
template <class Scalar>
class head {
 public:
  //! @param piece  which of model.head_pieces
  explicit head(const config& model, int piece = 0);

  std::size_t parameter_scalars() const { return parameters_.end(); }
  std::size_t stash_scalars() const { return stash_.end(); }
  std::vector<tensor> tensors() const;
  tensor table() const { return table_; }
  //! A piece's part of what a whole head's would be.
  void initialise(std::uint64_t seed, std::span<Scalar> parameters) const;

  //! Where it ends: sets *loss to the mean cross-entropy of the micro-batch in nats per token,
  //! times `loss_scale`; of a slice its part of that mean. This is the one place where the loss is
  //! scaled: its gradient carries the same factor. Copies the row's logits where they are asked
  //! for.
  //! @param targets  of the slice: they tell its rows
  //! @param output   for the piece behind, a message; not of the last one
  void forward(const counted_math<Scalar>& with, std::span<const Scalar> parameters,
               std::span<const Scalar> input, std::span<Scalar> output,
               std::span<const std::uint8_t> targets, double loss_scale, std::span<Scalar> stash,
               double* loss, row_logits<Scalar> asked = {}) const;

  //! After forward. Leaves in the stash the intermediate gradient that the weights need.
  //! @param output_gradient  from the piece behind; not of the last one
  //! @param rows             of the slice
  void backward_input(const counted_math<Scalar>& with, std::span<const Scalar> parameters,
                      std::span<const Scalar> output_gradient, std::span<Scalar> input_gradient,
                      std::span<Scalar> stash, std::size_t rows) const;

  //! After backward_input. Adds to `gradients`.
  void backward_weight(const counted_math<Scalar>& with, std::span<const Scalar> stash,
                       std::span<Scalar> gradients, std::size_t rows) const;

 private:
  bool norms() const { return piece_ == 0; }
  bool ends() const { return piece_ + 1 == model_.head_pieces; }
  bool whole() const { return model_.head_pieces == 1; }
  matrix_span<const Scalar> table_of(std::span<const Scalar> parameters) const {
    return {&parameters[table_.offset], tokens_, width_};
  }
  //! Of a piece, until its backward: in Scalar, whatever activations are held in.
  matrix_span<Scalar> logits_of(std::span<Scalar> stash, std::size_t rows) const {
    return {&stash[logits_.offset], rows, tokens_};
  }
  std::size_t held_bytes(std::size_t rows) const {
    return model_.held_scalars(rows * width_) * sizeof(Scalar);
  }

  config model_;
  int piece_;
  std::size_t width_, tokens_;
  tensor_layout parameters_, stash_;
  tensor gamma_, beta_, table_;
  tensor deviation_, targets_, sums_;
  held_tensor normal_, output_, logits_, output_gradient_;
  held_tensor logits_gradient_;  // in the logits' place, unless it alone is in bf16
};

extern template class head<float>;
extern template class head<double>;

}  // namespace train
