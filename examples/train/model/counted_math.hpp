// The operations on tensors for the length of a job: on what is held between ops, in whatever it is
// held, and with a count of what products take.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "model/math.hpp"
#include "model/scratch.hpp"

namespace train {

//! Parameters and a copy of them in bf16, which lies as they do; null: there is none.
template <class Scalar>
struct rounded_weights {
  std::span<const Scalar> parameters{};
  const bfloat16* copy = nullptr;

  //! Null for what is none of the parameters.
  const bfloat16* copy_of(const Scalar* value) const {
    const std::less<const Scalar*> before;
    const Scalar* const first = parameters.data();
    if (copy == nullptr || before(value, first) || !before(value, first + parameters.size()))
      return nullptr;
    return copy + (value - first);
  }
};

//! An op reads what is held, computes in Scalar and keeps what it has made, rounded where bf16 is
//! what holds it. Counts the multiply-adds of products where they are done; all else is math's.
template <class Scalar>
class counted_math {
 public:
  using held = held_matrix<Scalar>;
  using held_constant = held_matrix<const Scalar>;

  //! @param weights  products with one of these read its copy
  counted_math(const math<Scalar>& with, std::uint64_t& multiply_adds,
               rounded_weights<Scalar> weights = {})
      : math_(with), multiply_adds_(multiply_adds), weights_(weights) {}

  //! What is held, in Scalar: where it lies or, of bf16, in that room until it is used again.
  matrix_span<const Scalar> read(const held_constant& of, int room) const {
    if (!of.in_bf16()) return of.wide();
    const matrix_span<Scalar> to = in_room(of, room);
    math_.widen(of.narrow(), to);
    return to;
  }
  //! Where to make what is to be kept there, likewise.
  matrix_span<Scalar> place(const held& of, int room) const {
    return of.in_bf16() ? in_room(of, room) : of.wide();
  }
  //! The same with what is there.
  matrix_span<Scalar> open(const held& of, int room) const {
    read(of, room);
    return place(of, room);
  }
  //! Holds what was made; of what is not in its place yet, rows without gaps.
  void keep(const matrix_span<const Scalar>& made, const held& to) const {
    if (to.in_bf16())
      math_.round(made, to.narrow());
    else if (made.data != to.wide().data)
      math_.copy(made.data, to.wide().data, made.rows * made.columns * sizeof(Scalar));
  }

  //! out = left * right, or out += left * right; so for each of the batch.
  void product(const matrix_span<Scalar>& out, const factor<Scalar>& left,
               const factor<Scalar>& right, bool add = false,
               const product_batch& of = {}) const {
    math_.product(out, left, counted(left, right, of), add, of);
  }
  //! What is held in bf16 is added to in that room. Of a batch, `out` is all results side by side.
  void product(const held& out, const factor<Scalar>& left, const factor<Scalar>& right,
               bool add = false, const product_batch& of = {}, int room = 0) const {
    if (out.in_bf16() && !add)
      return math_.rounded_product(out.columns_from(0, out.columns() / of.count).narrow(), left,
                                   counted(left, right, of), of);
    const matrix_span<Scalar> made = open(out, room);
    product(made.columns_from(0, made.columns / of.count), left, right, add, of);
    keep(made, out);
  }

  //! See math::norm; takes rooms 1 and 2.
  void norm(const Scalar* gamma, const Scalar* beta, const matrix_span<const Scalar>& input,
            const held& normalised, Scalar* inverse_deviation, const held& output) const {
    const matrix_span<Scalar> unit = place(normalised, 1), made = place(output, 2);
    math_.norm(gamma, beta, input, unit, inverse_deviation, made);
    keep(unit, normalised);
    keep(made, output);
  }
  void norm_back(const Scalar* gamma, const held_constant& normalised,
                 const Scalar* inverse_deviation, const held_constant& output_gradient,
                 const held_constant& residual_gradient, const held& input_gradient) const {
    const matrix_span<const Scalar> residual = read(residual_gradient, 2);
    const matrix_span<Scalar> made = place(input_gradient, 2);
    math_.norm_back(gamma, read(normalised, 0), inverse_deviation, read(output_gradient, 1),
                    residual, made);
    keep(made, input_gradient);
  }
  void norm_weights(const held_constant& normalised, const held_constant& output_gradient,
                    Scalar* gamma_gradient, Scalar* beta_gradient) const {
    math_.norm_weights(read(normalised, 0), read(output_gradient, 1), gamma_gradient,
                       beta_gradient);
  }

  const math<Scalar>* operator->() const { return &math_; }

 private:
  matrix_span<Scalar> in_room(const held_constant& of, int room) const {
    const std::span<Scalar> memory = math_.room(room);
    check_scratch(of.rows() * of.columns(), memory.size());
    return {memory.data(), of.rows(), of.columns()};
  }

  //! The right side, which is where a weight always is.
  factor<Scalar> counted(const factor<Scalar>& left, factor<Scalar> right,
                         const product_batch& of) const {
    multiply_adds_ += std::uint64_t{left.rows()} * left.columns() * right.columns() * of.count;
    if (right.copy == nullptr) right.copy = weights_.copy_of(right.of.data);
    return right;
  }

  const math<Scalar>& math_;
  std::uint64_t& multiply_adds_;
  rounded_weights<Scalar> weights_;
};

}  // namespace train
