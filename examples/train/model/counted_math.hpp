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

//! Counts the multiply-adds of products where they are done, and rounds their results where bf16 is
//! what holds them; all else is math's.
template <class Scalar>
class counted_math {
 public:
  using held = held_matrix<Scalar>;
  using held_constant = held_matrix<const Scalar>;

  //! @param weights  products with one of these read its copy
  counted_math(const math<Scalar>& with, std::uint64_t& multiply_adds,
               rounded_weights<Scalar> weights = {})
      : math_(with), multiply_adds_(multiply_adds), weights_(weights) {}

  //! Where a product is to go that more is done to before it is held there: there or, of bf16, in
  //! room 0.
  matrix_span<Scalar> place(const held& of) const {
    return of.in_bf16() ? in_room(of, 0) : of.wide();
  }
  //! Holds what was made, of which rows have no gaps.
  void keep(const matrix_span<const Scalar>& made, const held& to) const {
    if (to.in_bf16())
      math_.round(made, to.narrow());
    else
      math_.copy(made.data, to.wide().data, made.rows * made.columns * sizeof(Scalar));
  }

  //! out = left * right, or out += left * right; so for each of the batch.
  void product(const matrix_span<Scalar>& out, const factor<Scalar>& left,
               const factor<Scalar>& right, bool add = false,
               const product_batch& of = {}) const {
    math_.product(out, left, counted(left, right, of), add, of);
  }
  //! Of a batch, `out` is all results side by side.
  void product(const held& out, const factor<Scalar>& left, const factor<Scalar>& right,
               bool add = false, const product_batch& of = {}) const {
    const held first = out.columns_from(0, out.columns() / of.count);
    if (out.in_bf16())
      math_.rounded_product(first.narrow(), left, counted(left, right, of), add, of);
    else
      product(first.wide(), left, right, add, of);
  }
  //! out = the sum of so many products, rounded once; sides(number) gives the two of each.
  template <class Sides>
  void products(const held& out, std::size_t terms, const product_batch& of,
                const Sides& sides) const {
    const bool meet = terms > 1 && out.in_bf16();
    const held sum = meet ? held(in_room(out, 2)) : out;
    for (std::size_t term = 0; term < terms; ++term) {
      const auto [left, right] = sides(term);
      product(sum, left, right, term > 0, of);
    }
    if (meet) keep(sum.wide(), out);
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
