// The operations on tensors for the length of a job, with a count of what its products take.
#pragma once

#include <cstdint>

#include "model/math.hpp"

namespace train {

//! Counts the multiply-adds of products where they are done; all else is math's.
template <class Scalar>
class counted_math {
 public:
  counted_math(const math<Scalar>& with, std::uint64_t& multiply_adds)
      : math_(with), multiply_adds_(multiply_adds) {}

  //! out = left * right, or out += left * right.
  void product(matrix_span<Scalar> out, factor<Scalar> left, factor<Scalar> right,
               bool add = false) const {
    math_.product(out, left, right, add);
    multiply_adds_ += std::uint64_t{left.rows()} * left.columns() * right.columns();
  }

  const math<Scalar>* operator->() const { return &math_; }

 private:
  const math<Scalar>& math_;
  std::uint64_t& multiply_adds_;
};

}  // namespace train
