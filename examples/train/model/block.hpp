// Layers 1 to L: x + attention(norm(x)), then y + mlp(norm(y)).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/config.hpp"
#include "model/counted_math.hpp"
#include "model/op.hpp"
#include "model/tensor.hpp"

namespace train {

//! What a slice's jobs need of the slices before it of the same micro-batch: their stashes, in
//! order.
template <class Scalar>
using earlier_slices = std::span<const std::span<Scalar>>;

//! What an op of a block reads and writes, all of it the caller's.
template <class Scalar>
struct block_call {
  const counted_math<Scalar>& by;
  std::span<const Scalar> parameters;
  //! Of a forward the input, of a backward the gradient of the output.
  std::span<const Scalar> from;
  //! Of a forward the output, of a backward the gradient of the input; before it is that, it holds
  //! what passes from one op to a later one. Must not overlap `from`.
  std::span<Scalar> to;
  std::span<Scalar> stash;
  //! Where products leave what is to be summed over the shards, and the op behind the sum finds
  //! it. It need not last longer than that. Empty: somewhere in the stash, where nothing is summed.
  std::span<Scalar> sums;
  //! A slice reads the keys and values of those before it, and adds its part to their gradients:
  //! each is a whole stage's stash, in which this block's begins at `place`.
  earlier_slices<Scalar> earlier;
  std::size_t place = 0;
  std::size_t slice = 0;  //!< its number
  //! Of an op that is cut by rows.
  op_piece piece{};
};

//! A transformer block, or one shard of it (Megatron-LM: Shoeybi et al. 2019): its own heads, for
//! which it has columns of the joint weights and rows of the mixing ones, and its own hidden
//! features, columns of the up weights and rows of the down ones; norms, and the biases that come
//! behind a sum, it has whole. What a shard's mix and down products give, and its backward products
//! with the up and joint weights, are summed over all shards; then all go on with the same bits.
//!
//! Stateless: parameters, gradients, activations and stash are the caller's. Activations and their
//! gradients are row-major [rows, width], of which a shorter slice fills the first. Jobs are made
//! of ops, which job_ops lists in an order in which they may run; each reads its arguments during
//! the call only: what a later one needs of an earlier one is in the stash (and in `to` and `sums`
//! within the job).
template <class Scalar>
class block {
 public:
  using call = block_call<Scalar>;

  explicit block(const config& model);

  std::size_t parameter_scalars() const { return parameters_.end(); }
  std::size_t stash_scalars() const { return stash_.end(); }
  std::vector<tensor> tensors() const;

  //! Of a block in one piece. Depends on the seed and the layer's number only. The two projections
  //! that add to the residual start smaller by sqrt(2 * layers), which keeps the residual's
  //! variance of order 1.
  void initialise(std::uint64_t seed, int layer, std::span<Scalar> parameters) const;

  //! One op of a forward, or of a backward for the input, which leaves in the stash the
  //! intermediate gradients that the weights need. A slice's backward comes after those of the
  //! later ones of its micro-batch.
  void run(op_code op, const call& with) const;

  //! One op of the backward for the weights, each of which adds to gradients of its own, in any
  //! order. It needs the output's gradient and what the ops before it left in the stash.
  //! @param slice  whose stash it is
  //! @param piece  of its columns
  void run_weight(op_code op, const counted_math<Scalar>& with,
                  std::span<const Scalar> output_gradient, std::span<const Scalar> stash,
                  std::span<Scalar> gradients, std::size_t slice, op_piece piece = {}) const;

 private:
  // The ops, in the order of their codes.
  void norm1(const call& with) const;
  void qkv(const call& with) const;
  void attention(const call& with) const;
  void mix(const call& with) const;
  void middle(const call& with) const;
  void up(const call& with) const;
  void down(const call& with) const;
  void output(const call& with) const;
  void down_back(const call& with) const;
  void up_back(const call& with) const;
  void middle_back(const call& with) const;
  void attention_back(const call& with) const;
  void qkv_back(const call& with) const;
  void input_back(const call& with) const;

  config model_;
  std::size_t width_, share_, hidden_;  // the last two of the shard

  tensor_layout parameters_;
  tensor gamma1_, beta1_, joint_weight_, joint_bias_, mix_weight_, mix_bias_;
  tensor gamma2_, beta2_, up_weight_, up_bias_, down_weight_, down_bias_;

  // In the stash: what forward leaves for both backwards ...
  tensor_layout stash_;
  tensor deviation1_, deviation2_;
  held_tensor normal1_, output1_, joint_, weights_, mixed_;
  held_tensor normal2_, output2_, slope_, hidden_values_;
  // ... and what the backward for the input leaves for that for the weights (`scratch_` is its
  // own).
  held_tensor hidden_gradient_, output2_gradient_, middle_gradient_, joint_gradient_,
      output1_gradient_;
  tensor scratch_;
};

extern template class block<float>;
extern template class block<double>;

}  // namespace train
