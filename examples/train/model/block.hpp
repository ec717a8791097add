// Layers 1 to L: x + attention(norm(x)), then y + mlp(norm(y)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/config.hpp"
#include "model/tensor.hpp"

namespace train {

//! What a slice's jobs need of the slices before it of the same micro-batch: their stashes, in
//! order. Its own number is how many there are.
template <class Scalar>
using earlier_slices = std::span<const std::span<Scalar>>;

//! A transformer block. Stateless: parameters, gradients, activations and stash are the caller's.
//! Activations and their gradients are row-major [rows, width]. Each of the three functions reads
//! its arguments during the call only: what a later one needs of an earlier one is in the stash.
//! `multiply_adds` grows by the multiply-adds of the matrix products done.
template <class Scalar>
class block {
 public:
  explicit block(const config& model);

  std::size_t parameter_scalars() const { return parameters_.end(); }
  std::size_t stash_scalars() const { return stash_.end(); }
  std::vector<tensor> tensors() const;

  //! Depends on the seed and the layer's number only. The two projections that add to the
  //! residual start smaller by sqrt(2 * layers), which keeps the residual's variance of order 1.
  void initialise(std::uint64_t seed, int layer, std::span<Scalar> parameters) const;

  //! `output` must not overlap `input`. A slice reads the keys and values of `earlier`, of which
  //! each is a whole stage's stash and `place` this block's part.
  void forward(std::span<const Scalar> parameters, std::span<const Scalar> input,
               std::span<Scalar> output, std::span<Scalar> stash, earlier_slices<Scalar> earlier,
               const tensor& place, std::uint64_t& multiply_adds) const;
  //! The same for a whole sequence.
  void forward(std::span<const Scalar> parameters, std::span<const Scalar> input,
               std::span<Scalar> output, std::span<Scalar> stash,
               std::uint64_t& multiply_adds) const {
    forward(parameters, input, output, stash, {}, {}, multiply_adds);
  }

  //! After forward. `input_gradient` must not overlap `output_gradient`; it is also used as
  //! scratch. Leaves in the stash the intermediate gradients that the weights need. A slice comes
  //! after the later ones of its micro-batch, and adds its part to the gradients of the keys and
  //! values of the earlier ones.
  void backward_input(std::span<const Scalar> parameters, std::span<const Scalar> output_gradient,
                      std::span<Scalar> input_gradient, std::span<Scalar> stash,
                      earlier_slices<Scalar> earlier, const tensor& place,
                      std::uint64_t& multiply_adds) const;

  //! After backward_input, with the same output gradient. Adds to `gradients`.
  void backward_weight(std::span<const Scalar> output_gradient, std::span<const Scalar> stash,
                       std::span<Scalar> gradients, std::uint64_t& multiply_adds) const;

 private:
  config model_;
  std::size_t rows_, width_, hidden_;

  tensor_layout parameters_;
  tensor gamma1_, beta1_, joint_weight_, joint_bias_, mix_weight_, mix_bias_;
  tensor gamma2_, beta2_, up_weight_, up_bias_, down_weight_, down_bias_;

  // In the stash: what forward leaves for both backwards ...
  tensor_layout stash_;
  tensor normal1_, deviation1_, output1_, joint_, weights_, mixed_;
  tensor normal2_, deviation2_, output2_, slope_, hidden_values_;
  // ... and what backward_input leaves for backward_weight (`scratch_` is its own).
  tensor hidden_gradient_, output2_gradient_, middle_gradient_, joint_gradient_, output1_gradient_;
  tensor scratch_;
};

extern template class block<float>;
extern template class block<double>;

}  // namespace train
