// What the model's ops are made of: the one place that knows where tensors lie, and who computes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "model/matrix.hpp"
#include "model/optimizer.hpp"

namespace train {

//! The operations on tensors. Every pointer and span is memory that the implementation computes in,
//! unless it says "host". On a device each call only enqueues its work, in order, behind the calls
//! before it; on the host it is done on return. Sums within a call go in a fixed order: the same
//! call gives the same bits. What is held in bf16 is computed in Scalar: an operation widens what
//! it reads and rounds what it leaves.
template <class Scalar>
class math {
 public:
  using held = held_matrix<Scalar>;
  using held_constant = held_matrix<const Scalar>;

  virtual ~math() = default;

  //! Whether its memory is the host's, and its work done on return.
  virtual bool on_host() const = 0;
  //! Where the calls behind this one enqueue their work: a stream of the device's, and how many of
  //! its multiprocessors may work on it (0: all). Nothing on the host.
  virtual void on_stream(void* native, int multiprocessors) const = 0;

  //! Whether products read bf16: each side is rounded into scratch of the math's own, unless it has
  //! a copy. Then one thread calls at a time. Sums are of Scalar's precision nevertheless.
  virtual bool rounds() const = 0;
  //! Bytes of that scratch, of the rooms, and of what else computing in bf16 takes.
  virtual std::size_t rounding_bytes() const = 0;
  //! to = from in bf16.
  virtual void round(matrix_span<const Scalar> from, matrix_span<bfloat16> to) const = 0;
  //! Memory of the math's own, below `rooms`, see room_scalars(). Where activations are in bf16,
  //! for what an op computes of one and has not rounded yet: 0 for what a product leaves for more
  //! to be done to it (a rounded one of the host takes it, too), 1 for the gradients of attention
  //! scores, in bf16, 2 for sums over slices. Otherwise there is none but, where it batches(), room
  //! 0, for the attention scores of a sequence's heads.
  virtual std::span<Scalar> room(int which) const = 0;
  static constexpr int rooms = 3;

  //! Whether a batch of products is better than one after the other: it is launched as one.
  virtual bool batches() const = 0;
  //! out = left * right, or out += left * right; so for each of the batch, whose first is given.
  virtual void product(matrix_span<Scalar> out, factor<Scalar> left, factor<Scalar> right,
                       bool add, const product_batch& of = {}) const = 0;
  //! The same, rounded, by a math that rounds.
  virtual void rounded_product(matrix_span<bfloat16> out, factor<Scalar> left,
                               factor<Scalar> right, bool add,
                               const product_batch& of = {}) const = 0;

  //! Every row of out = that of from, plus bias [columns]; out may be from.
  virtual void add_bias(const held& out, matrix_span<const Scalar> from,
                        const Scalar* bias) const = 0;
  //! out = (from + bias) + more; out may be from.
  //! @param exact  the same before it is rounded, where out is in bf16; without data: not needed
  virtual void residual(const held& out, const held_constant& from, const Scalar* bias,
                        const held_constant& more, matrix_span<Scalar> exact = {}) const = 0;
  //! out = from * by, element by element; out may be from.
  virtual void multiply(const held& out, matrix_span<const Scalar> from,
                        const held_constant& by) const = 0;
  //! value = GELU(input), and its slope there. slope may be neither of the others.
  virtual void gelu(matrix_span<const Scalar> input, const held& value,
                    const held& slope) const = 0;
  //! sums [columns] += the rows of `values`, top to bottom.
  virtual void add_rows(Scalar* sums, const held_constant& values) const = 0;

  //! Layer normalisation of each row, see norm.hpp.
  virtual void norm(const Scalar* gamma, const Scalar* beta, const held_constant& input,
                    const held& normalised, Scalar* inverse_deviation,
                    const held& output) const = 0;
  virtual void norm_back(const Scalar* gamma, const held_constant& normalised,
                         const Scalar* inverse_deviation, const held_constant& output_gradient,
                         const held_constant& residual_gradient,
                         const held& input_gradient) const = 0;
  virtual void norm_weights(const held_constant& normalised, const held_constant& output_gradient,
                            Scalar* gamma_gradient, Scalar* beta_gradient) const = 0;

  //! Of scores of so many rows, one below the other, row r of each becomes softmax(scale * its
  //! first before + r + 1 columns), and 0 behind: in `weights`, which are the scores themselves or
  //! in bf16. These are lost.
  virtual void softmax(matrix_span<Scalar> scores, std::size_t rows, std::size_t before,
                       Scalar scale, const held& weights) const = 0;
  //! From the gradients of what softmax gave those of the scores; likewise.
  virtual void softmax_back(matrix_span<Scalar> gradients, const held_constant& weights,
                            std::size_t rows, std::size_t before, Scalar scale,
                            const held& score_gradients) const = 0;

  //! Row r of output = table[tokens[r]] + positions[r % length].
  virtual void embed(const held& output, const Scalar* table, const Scalar* positions,
                     const std::uint8_t* tokens, std::size_t length) const = 0;
  //! Adds the rows to the gradients of both, top to bottom.
  virtual void embed_weights(const held_constant& output_gradient, Scalar* table,
                             Scalar* positions, const std::uint8_t* tokens,
                             std::size_t length) const = 0;
  //! *loss = factor * the sum over rows of their cross entropy with targets [rows], whose gradient
  //! is left in the logits' place, or in bf16. They are lost.
  virtual void cross_entropy(matrix_span<Scalar> logits, const std::uint8_t* targets, double factor,
                             double* loss, const held& gradient) const = 0;

  //! Of some columns of logits, those of the tokens from `first` on: sets each row's sums (see
  //! sums_of_row) to the largest logit, the sum of exponentials of what logits are above that, and
  //! the target's logit, or 0, where it is not among them.
  //! @param before  those of the columns before, which are then counted, too; null: there are none
  virtual void row_sums(matrix_span<const Scalar> logits, const std::uint8_t* targets,
                        std::size_t first, const Scalar* before, Scalar* sums) const = 0;
  //! *loss as cross_entropy has it, from sums of all columns. These become, of each row, the
  //! largest logit, factor by the sum of exponentials, and factor.
  virtual void summed_loss(Scalar* sums, std::size_t rows, double factor, double* loss) const = 0;
  //! The gradient of logits of some columns, in their place, or in bf16. They are lost.
  //! @param sums  as summed_loss leaves them
  virtual void logits_back(matrix_span<Scalar> logits, const std::uint8_t* targets,
                           std::size_t first, const Scalar* sums, const held& gradient) const = 0;

  virtual void copy(const void* from, void* to, std::size_t bytes) const = 0;
  virtual void zero(void* to, std::size_t bytes) const = 0;
  //! to = left + right; to may be either.
  virtual void add(std::span<const Scalar> left, std::span<const Scalar> right,
                   std::span<Scalar> to) const = 0;
  //! *sum += the squares of all values.
  virtual void add_squares(std::span<const Scalar> values, double* sum) const = 0;
  //! Sets *to to the sum of the losses, the global norm of the gradient and what it is multiplied
  //! by, see clip_factor(). Without an exception where the norm is not finite, a factor of 0, with
  //! which update() does nothing.
  virtual void finish(std::span<const double> norms, std::span<const double> losses,
                      double norm_limit, step_result* to) const = 0;
  //! See train::update; all factors are read when the work is done.
  virtual void update(const adamw_factors<Scalar>* by, const double* clip_factor, bool decayed,
                      std::span<Scalar> parameters, std::span<const Scalar> gradients,
                      std::span<Scalar> mean, std::span<Scalar> square) const = 0;

  //! Zeroed memory for tensors, aligned to 64 bytes. Outside steps.
  //! @throws std::bad_alloc, or what the device throws
  virtual std::shared_ptr<void> allocate(std::size_t bytes) const = 0;
  //! Memory of the host from which copy() may take while the host goes on. Outside steps.
  virtual std::shared_ptr<void> allocate_staging(std::size_t bytes) const = 0;
  //! Copies between the host's memory and its own, done on return. Outside steps.
  virtual void put(const void* host, void* to, std::size_t bytes) const = 0;
  virtual void get(const void* from, void* host, std::size_t bytes) const = 0;
};

//! Numbers in the memory of a math, zero at first.
template <class Value, class Scalar>
class math_array {
 public:
  math_array(const math<Scalar>& by, std::size_t size)
      : memory_(by.allocate(size * sizeof(Value))), size_(size) {}

  std::span<Value> span() const { return {static_cast<Value*>(memory_.get()), size_}; }

 private:
  std::shared_ptr<void> memory_;
  std::size_t size_;
};

}  // namespace train
