// Layer L + 1: final norm, projection onto the vocabulary, softmax cross-entropy.
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
  Scalar* to = nullptr;  //!< [vocabulary]; null: nobody asks
};

//! The head. Stateless: parameters, gradients, activations and stash are the caller's. The
//! projection is a table [vocabulary, width]; a tied head has its own copy of the embedding's table
//! and its own gradient for it, see stage.hpp for how the two stay equal.
template <class Scalar>
class head {
 public:
  explicit head(const config& model);

  std::size_t parameter_scalars() const { return parameters_.end(); }
  std::size_t stash_scalars() const { return stash_.end(); }
  std::vector<tensor> tensors() const { return {gamma_, beta_, table_}; }
  tensor table() const { return table_; }
  void initialise(std::uint64_t seed, std::span<Scalar> parameters) const;

  //! Sets *loss to the mean cross-entropy of the micro-batch in nats per token, times `loss_scale`; of a slice
  //! its part of that mean. This is the one place where the loss is scaled: its gradient, left in
  //! the stash, carries the same factor. Copies the row's logits where they are asked for.
  void forward(const counted_math<Scalar>& with, std::span<const Scalar> parameters,
               std::span<const Scalar> input, std::span<const std::uint8_t> targets,
               double loss_scale, std::span<Scalar> stash, double* loss,
               row_logits<Scalar> asked = {}) const;

  //! After forward. Leaves in the stash the intermediate gradient that the weights need.
  void backward_input(const counted_math<Scalar>& with, std::span<const Scalar> parameters,
                      std::span<Scalar> input_gradient, std::span<Scalar> stash) const;

  //! After backward_input. Adds to `gradients`.
  void backward_weight(const counted_math<Scalar>& with, std::span<const Scalar> stash,
                       std::span<Scalar> gradients) const;

 private:
  matrix_span<const Scalar> table_of(std::span<const Scalar> parameters) const {
    return {&parameters[table_.offset], vocabulary_, width_};
  }

  config model_;
  std::size_t rows_, width_, vocabulary_;
  tensor_layout parameters_, stash_;
  tensor gamma_, beta_, table_;
  tensor deviation_;
  held_tensor normal_, output_, logits_, output_gradient_;
};

extern template class head<float>;
extern template class head<double>;

}  // namespace train
