// Layer 0: a token's row of a table plus its position's row of another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/config.hpp"
#include "model/counted_math.hpp"
#include "model/tensor.hpp"

namespace train {

//! The embedding. Stateless: parameters, gradients and activations are the caller's.
//! Its gradient with respect to the parameters needs the tokens and the output's gradient only;
//! it has no gradient for its input.
template <class Scalar>
class embedding {
 public:
  explicit embedding(const config& model);

  std::size_t parameter_scalars() const { return layout_.end(); }
  std::vector<tensor> tensors() const { return {table_, positions_}; }
  tensor table() const { return table_; }
  void initialise(std::uint64_t seed, std::span<Scalar> parameters) const;

  //! The tied table alone, as `initialise` fills it: for the head's own copy.
  static void initialise_table(std::uint64_t seed, std::span<Scalar> table);

  //! output [rows, width] from `rows` tokens of the slice, each below the vocabulary.
  void forward(const counted_math<Scalar>& with, std::span<const Scalar> parameters,
               std::span<const std::uint8_t> tokens, std::span<Scalar> output,
               std::size_t slice = 0) const;

  //! Adds to the gradients of both tables, in the order of the rows.
  void backward_weight(const counted_math<Scalar>& with, std::span<const std::uint8_t> tokens,
                       std::span<const Scalar> output_gradient, std::span<Scalar> gradients,
                       std::size_t slice = 0) const;

 private:
  //! Where the positions of a slice begin.
  std::size_t positions(std::size_t slice) const {
    return positions_.offset + model_.cut().begin(slice) * config::size(model_.width);
  }

  config model_;
  tensor_layout layout_;
  tensor table_, positions_;
};

extern template class embedding<float>;
extern template class embedding<double>;

}  // namespace train
