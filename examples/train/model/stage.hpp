// A run of consecutive layers with all that belongs to it: what one pipeline stage computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/block.hpp"
#include "model/config.hpp"
#include "model/embedding.hpp"
#include "model/head.hpp"
#include "model/host_math.hpp"
#include "model/layer.hpp"
#include "model/math.hpp"
#include "model/op.hpp"
#include "model/optimizer.hpp"
#include "model/tensor.hpp"
#include "stretto/model/job.hpp"

namespace train {

//! What a job is given, all of it memory that the stage's math computes in. All buffers are aligned
//! to 64 bytes and distinct; what a job has no use for is ignored. Where the model's activations
//! are bf16, a stash and messages hold two of them in a float.
template <class Scalar>
struct job_arguments {
  std::span<const std::uint8_t> tokens{};   //!< forward with the embedding: the input bytes
  //! Forward with (a piece of) the head: bytes to predict.
  std::span<const std::uint8_t> targets{};
  std::span<const Scalar> input{};  //!< forward without the embedding: the activation received
  std::span<Scalar> output{};       //!< forward without the head: the activation to send
  std::span<const Scalar> output_gradient{};  //!< backward without the head: the one received
  std::span<Scalar> input_gradient{};         //!< backward without the embedding: the one to send
  std::span<Scalar> stash{};
  //! With shards, for ops that is_beside_sum() names: what sums over the shards work on, in place,
  //! as long as an activation. One for all of a job's sums, and no other job's before its end; any
  //! content will do.
  std::span<Scalar> sums{};
  double loss_scale = 1;             //!< forward with the head: 1 / micro-batches
  double* loss = nullptr;            //!< forward with the head: set to its loss, when not null
  row_logits<Scalar> logits{};       //!< forward with the head: what else it is to leave
  earlier_slices<Scalar> earlier{};  //!< the stashes of the slices before this one
  std::size_t slice = 0;             //!< its number: there are as many earlier ones
};

//! Layers [first, last) of a model: parameters, gradients and AdamW moments, and the jobs on them.
//!
//! For one micro-batch: forward, then backward_input, then backward_weight (or backward, both at
//! once), any number of micro-batches interleaved, each with its own stash. A job reads and writes
//! the caller's message buffers during the call only; what a later job needs is in the stash, whose
//! old content never matters. So an activation received is free after forward, a gradient received
//! after backward_input. All buffers are aligned to 64 bytes and distinct.
//!
//! No job allocates; Eigen's scratch is on the stack instead: below 1 MiB at the default sizes, at
//! most about 4 MiB at any, so threads want the usual 8 MiB. Jobs of one category (forward,
//! backward for input, for weights) must not run at the same time on one stage; different
//! categories may, each on its own micro-batch, unless the stage's math rounds what products read.
//!
//! Gradients are sums over the micro-batches in the order of their backward_weight calls: the same
//! order gives the same bits, however the layers are dealt to stages.
//!
//! Where the model cuts sequences in slices, all of this holds for a slice in place of a
//! micro-batch, with a stash of its own. The slices of a micro-batch run forward in order and
//! backward in reverse, and each call takes the stashes of those before it: attention reads the
//! keys and values that they keep, and adds to the gradients of these. Slices may be of different
//! lengths: every buffer has room for the longest, and of a shorter one the rest means nothing.
//! Such sums group their terms otherwise than a whole sequence's, so results agree to rounding
//! only.
//!
//! A stage may be one of the model's shards (see block.hpp). Its jobs then run op by op, with the
//! sums over the shards done by the caller: every shard's `sums` is set to the sum of all, with the
//! same bits everywhere. What all shards have whole, parameters, gradients and loss, is then the
//! same on all to the bit. Embedding and head are.
template <class Scalar>
class basic_stage {
 public:
  //! Sets the parameters from the seed; gradients and moments start at zero.
  //! @param by    does its work, and outlives it
  //! @param held  false: in another process. Then it has sizes alone, no memory, and does nothing.
  //! @throws std::invalid_argument for a bad config, an empty or unknown range of layers, or a
  //!         shard that the model does not have
  basic_stage(const config& model, int first, int last, std::uint64_t seed, int shard = 0,
              const math<Scalar>& by = host_math<Scalar>(), bool held = true);

  const config& model() const { return model_; }
  int first() const { return first_; }
  int last() const { return last_; }
  int shard() const { return shard_; }
  const math<Scalar>& by() const { return *by_; }
  bool has_embedding() const { return first_ == 0; }
  //! The head, or its last piece, which finds the loss; and any piece, which reads targets.
  bool has_head() const { return last_ == model_.layer_count(); }
  bool has_piece() const { return model_.piece(last_ - 1) >= 0; }

  //! What one micro-batch (slice) in flight needs, in scalars of memory and in bytes.
  std::size_t stash_scalars() const { return stash_.end(); }
  std::size_t stash_bytes() const { return stash_.end() * sizeof(Scalar); }

  //! An activation or its gradient between stages, in bytes: [microbatch * length, width], and
  //! behind it what pieces of the head hand on (config::sums_place).
  std::size_t message_bytes() const { return model_.message_scalars() * sizeof(Scalar); }

  //! Parameters, gradients and moments, in bytes.
  std::size_t state_bytes() const { return 4 * scalars_ * sizeof(Scalar); }

  //! Copies of the parameters in bf16, in bytes.
  std::size_t copies_bytes() const { return copies_.size_bytes(); }

  //! The ops of a job, in the order of its program; see job_ops.
  //! @throws std::invalid_argument for a kind that is no forward, backward or recomputation
  std::span<const stage_op> ops(stretto::job_kind kind) const;

  //! Runs one op of a job. The ops may run in any order that respects what they touch, as
  //! stage_chain (program.hpp) declares it, with other jobs' ops between: always to the same bits.
  //! A sum over the shards is the caller's to do.
  //! @param op    its number in ops(kind)
  //! @param with  the same in all ops of the job
  //! @param piece of the op: pieces of it run in any order that respects what they touch, too. Of
  //!              rows or columns each sum keeps its terms; their order is the math's, which may
  //!              tell by a matrix's size: results agree to rounding.
  //! @return      of the op with the loss the loss, where nothing else says where to leave it;
  //!              otherwise 0
  //! @throws std::invalid_argument for an op that the job does not have or that is a sum, a piece
  //!         of one that cannot be cut so (see cut_of), else as the job itself
  double run_op(stretto::job_kind kind, std::size_t op, const job_arguments<Scalar>& with,
                op_piece piece = {});

  // Whole jobs: their ops in order. Not for shards, whose sums would be missing.

  //! Any job, with what it needs of the arguments; the others are its shorthands.
  //! @return  the loss, where one is found and nothing else says where to leave it; otherwise 0
  double run_job(stretto::job_kind kind, const job_arguments<Scalar>& with);

  //! \param tokens      with the embedding: the micro-batch's input bytes; otherwise ignored
  //! \param targets     with the head, or a piece: the bytes to predict; otherwise ignored
  //! \param input       without the embedding: the activation received; otherwise ignored
  //! \param output      without the head: the activation to send; otherwise ignored
  //! \param loss_scale  with the head: 1 / micro-batches; see head::forward
  //! \param earlier     the stashes of the micro-batch's slices before this one
  //! \return            with the head: loss_scale * mean cross-entropy (nats per byte), otherwise 0
  //! @throws std::invalid_argument naming a buffer of the wrong size or alignment, a token outside
  //!         the vocabulary, or more slices than the model has
  double forward(std::span<const std::uint8_t> tokens, std::span<const std::uint8_t> targets,
                 std::span<const Scalar> input, std::span<Scalar> output, std::span<Scalar> stash,
                 double loss_scale, earlier_slices<Scalar> earlier = {});

  //! The forward again, with the same arguments, into a stash of any content: leaves there what
  //! forward did, to the bit, and no output. Not for slices.
  void recompute(std::span<const std::uint8_t> tokens, std::span<const std::uint8_t> targets,
                 std::span<const Scalar> input, std::span<Scalar> stash, double loss_scale);

  //! \param output_gradient  without the head: the gradient received; otherwise ignored
  //! \param input_gradient   without the embedding: the gradient to send; otherwise ignored
  void backward_input(std::span<const Scalar> output_gradient, std::span<Scalar> input_gradient,
                      std::span<Scalar> stash, earlier_slices<Scalar> earlier = {});

  //! Adds the micro-batch's part to the gradients. Does the weights' products only.
  //! \param slice  its number
  void backward_weight(std::span<const Scalar> stash, std::size_t slice = 0);

  //! Both backwards, layer by layer: the same bits as one after the other.
  void backward(std::span<const Scalar> output_gradient, std::span<Scalar> input_gradient,
                std::span<Scalar> stash, earlier_slices<Scalar> earlier = {});

  void zero_gradients();

  //! Where products read bf16, makes the copies of all parameters that they read: before a step's
  //! first job, and behind whatever changes parameters. Nothing otherwise.
  void round_weights();

  //! The gradient of the tied table on one side, of the rows that a piece of the head has; empty
  //! where this stage has no such side or piece, or the model is not tied. Complete after the last
  //! backward_weight of the step; then the stages of both sides exchange them and each calls
  //! join_tied.
  std::span<Scalar> tied_gradient(layer_kind side, int piece = 0);

  //! Sets the gradient of the piece's rows on both sides that this stage has to from_embedding +
  //! from_head. The arguments may be this stage's own spans.
  //! @throws std::invalid_argument naming a span of the wrong size
  void join_tied(std::span<const Scalar> from_embedding, std::span<const Scalar> from_head,
                 int piece = 0);

  //! Writes slot[layer] for its own layers: the squared norm of the layer's gradient. The tied
  //! table counts once, with the embedding; so after join_tied. `slots` has one slot per layer of
  //! the model: joined from all stages and summed in order they give the global norm. What all
  //! shards have whole counts with the first: a layer's is the sum over its shards.
  void squared_norms(std::span<double> slots) const;

  //! One AdamW step on every layer. Factors lie in memory of the stage's math.
  void clip_and_update(const adamw_factors<Scalar>* by, const double* clip_factor);

  //! @throws std::invalid_argument for the layer of another stage, or of one in another process
  std::span<Scalar> parameters(int layer) { return part(parameters_, layer); }
  std::span<const Scalar> parameters(int layer) const { return part(read(parameters_), layer); }
  //! Of all layers, as they lie in memory, 64-byte padding included.
  std::span<Scalar> gradients() { return gradients_; }
  std::span<Scalar> gradients(int layer) { return part(gradients_, layer); }
  std::span<const Scalar> gradients(int layer) const { return part(read(gradients_), layer); }

  //! The optimizer's moments.
  std::span<Scalar> mean(int layer) { return part(mean_, layer); }
  std::span<const Scalar> mean(int layer) const { return part(read(mean_), layer); }
  std::span<Scalar> square(int layer) { return part(square_, layer); }
  std::span<const Scalar> square(int layer) const { return part(read(square_), layer); }

  //! Multiply-adds of the matrix products done so far, by category.
  const product_counts& products() const { return products_; }

 private:
  // A layer's place: its parameters, and in the stash its own part and the slot between it and the
  // next layer. The slot holds the layer's output, and later the gradient of that output.
  struct place {
    tensor parameters, stash, slot;
    std::vector<tensor> tensors;
  };

  const place& at(int layer) const { return places_[static_cast<std::size_t>(layer - first_)]; }
  static std::span<const Scalar> read(std::span<Scalar> whole) { return whole; }
  template <class Value>
  std::span<Value> part(std::span<Value> whole, int layer) const;
  std::span<const std::uint8_t> stashed_tokens(std::span<const Scalar> stash,
                                               std::size_t slice) const;
  double run(stretto::job_kind kind, const stage_op& op, const job_arguments<Scalar>& with,
             op_piece piece = {});
  void run_weight(const stage_op& op, const counted_math<Scalar>& by,
                  std::span<const Scalar> stash, std::size_t slice, op_piece piece = {});
  void check_piece(op_code code, op_piece piece) const;
  void check(stretto::job_kind kind, const job_arguments<Scalar>& with) const;
  void check_slice(std::size_t slice) const;
  void check_earlier(const job_arguments<Scalar>& with) const;
  void refuse_shards() const;
  const head<Scalar>& head_of(int layer) const {
    return heads_[static_cast<std::size_t>(model_.piece(layer))];
  }

  config model_;
  int first_, last_, shard_;
  embedding<Scalar> embedding_;
  block<Scalar> block_;
  std::vector<head<Scalar>> heads_;  // all pieces
  std::vector<place> places_;
  std::vector<stage_op> ops_[4];  // of a forward, a backward, its halves
  tensor tokens_;
  tensor_layout stash_;
  const math<Scalar>* by_;
  std::size_t scalars_ = 0;  // of all its parameters
  std::shared_ptr<void> memory_;
  std::span<Scalar> parameters_, gradients_, mean_, square_;
  std::shared_ptr<void> copies_memory_;
  std::span<bfloat16> copies_;  // of the parameters; empty where products read Scalar
  product_counts products_;
};

using stage = basic_stage<float>;

extern template class basic_stage<float>;
extern template class basic_stage<double>;

}  // namespace train
