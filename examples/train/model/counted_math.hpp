// The operations on tensors for the length of a job, with a count of what its products take.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "model/math.hpp"

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

//! Counts the multiply-adds of products where they are done; all else is math's.
template <class Scalar>
class counted_math {
 public:
  //! @param weights  products with one of these read its copy
  counted_math(const math<Scalar>& with, std::uint64_t& multiply_adds,
               rounded_weights<Scalar> weights = {})
      : math_(with), multiply_adds_(multiply_adds), weights_(weights) {}

  //! out = left * right, or out += left * right.
  void product(matrix_span<Scalar> out, factor<Scalar> left, factor<Scalar> right,
               bool add = false) const {
    right.copy = weights_.copy_of(right.of.data);  // a weight is always on this side
    math_.product(out, left, right, add);
    multiply_adds_ += std::uint64_t{left.rows()} * left.columns() * right.columns();
  }

  const math<Scalar>* operator->() const { return &math_; }

 private:
  const math<Scalar>& math_;
  std::uint64_t& multiply_adds_;
  rounded_weights<Scalar> weights_;
};

}  // namespace train
