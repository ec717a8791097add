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
//! call gives the same bits.
template <class Scalar>
class math {
 public:
  virtual ~math() = default;

  //! Whether its memory is the host's, and its work done on return.
  virtual bool on_host() const = 0;
  //! Where the calls behind this one enqueue their work: a stream of the device's, and how many of
  //! its multiprocessors may work on it (0: all). Nothing on the host.
  virtual void on_stream(void* native, int multiprocessors) const = 0;

  //! Whether products read bf16: each side is rounded into scratch of the math's own, unless it has
  //! a copy. Then one thread calls at a time. Sums are of Scalar's precision nevertheless.
  virtual bool rounds() const = 0;
  //! Bytes of that scratch, and of the rooms.
  virtual std::size_t rounding_bytes() const = 0;
  //! to = from in bf16.
  virtual void round(matrix_span<const Scalar> from, matrix_span<bfloat16> to) const = 0;
  //! And back.
  virtual void widen(matrix_span<const bfloat16> from, matrix_span<Scalar> to) const = 0;
  //! Where activations are in bf16, room of the math's own for an op to compute them in; below
  //! `rooms`, of which the last one is there where it batches(). Otherwise there is none but, where
  //! it does, room 0, for the attention scores of a sequence's heads. See room_scalars(). Where it
  //! does not, rounded products take room 0.
  virtual std::span<Scalar> room(int which) const = 0;
  static constexpr int rooms = 4;

  //! Whether a batch of products is better than one after the other: it is launched as one.
  virtual bool batches() const = 0;
  //! out = left * right, or out += left * right; so for each of the batch, whose first is given.
  virtual void product(matrix_span<Scalar> out, factor<Scalar> left, factor<Scalar> right,
                       bool add, const product_batch& of = {}) const = 0;
  //! out = left * right, rounded, by a math that rounds; likewise.
  virtual void rounded_product(matrix_span<bfloat16> out, factor<Scalar> left,
                               factor<Scalar> right, const product_batch& of = {}) const = 0;

  //! Every row of out += bias [columns].
  virtual void add_bias(matrix_span<Scalar> out, const Scalar* bias) const = 0;
  //! out = (from + bias) + more; out may be from.
  virtual void residual(matrix_span<Scalar> out, matrix_span<const Scalar> from, const Scalar* bias,
                        matrix_span<const Scalar> more) const = 0;
  //! out *= by, element by element.
  virtual void multiply(matrix_span<Scalar> out, matrix_span<const Scalar> by) const = 0;
  //! value = GELU(input), and its slope there. slope may be neither of the others.
  virtual void gelu(matrix_span<const Scalar> input, matrix_span<Scalar> value,
                    matrix_span<Scalar> slope) const = 0;
  //! sums [columns] += the rows of `values`, top to bottom.
  virtual void add_rows(Scalar* sums, matrix_span<const Scalar> values) const = 0;

  //! Layer normalisation of each row, see norm.hpp.
  virtual void norm(const Scalar* gamma, const Scalar* beta, matrix_span<const Scalar> input,
                    matrix_span<Scalar> normalised, Scalar* inverse_deviation,
                    matrix_span<Scalar> output) const = 0;
  virtual void norm_back(const Scalar* gamma, matrix_span<const Scalar> normalised,
                         const Scalar* inverse_deviation, matrix_span<const Scalar> output_gradient,
                         matrix_span<const Scalar> residual_gradient,
                         matrix_span<Scalar> input_gradient) const = 0;
  virtual void norm_weights(matrix_span<const Scalar> normalised,
                            matrix_span<const Scalar> output_gradient, Scalar* gamma_gradient,
                            Scalar* beta_gradient) const = 0;

  //! Of scores of so many rows, one below the other, row r of each becomes softmax(scale * its first
  //! before + r + 1 columns), and 0 behind.
  virtual void softmax(matrix_span<Scalar> scores, std::size_t rows, std::size_t before,
                       Scalar scale) const = 0;
  //! The gradients of what softmax gave become those of the scores.
  virtual void softmax_back(matrix_span<Scalar> gradients, matrix_span<const Scalar> weights,
                            std::size_t rows, std::size_t before, Scalar scale) const = 0;

  //! Row r of output = table[tokens[r]] + positions[r % length].
  virtual void embed(matrix_span<Scalar> output, const Scalar* table, const Scalar* positions,
                     const std::uint8_t* tokens, std::size_t length) const = 0;
  //! Adds the rows to the gradients of both, top to bottom.
  virtual void embed_weights(matrix_span<const Scalar> output_gradient, Scalar* table,
                             Scalar* positions, const std::uint8_t* tokens,
                             std::size_t length) const = 0;
  //! *loss = factor * the sum over rows of their cross entropy with targets [rows]. The logits make
  //! room for their gradient.
  virtual void cross_entropy(matrix_span<Scalar> logits, const std::uint8_t* targets, double factor,
                             double* loss) const = 0;

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
