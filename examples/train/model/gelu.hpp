// GELU and its slope. Internal.
#pragma once

#include <cmath>
#include <numbers>

#include "model/algebra.hpp"

namespace train {

//! GELU in its tanh form (Hendrycks and Gimpel 2016): value = u * p with
//! p = (1 + tanh(z)) / 2 and z = sqrt(2 / pi) * (u + 0.044715 u^3). The slope is kept in place of
//! u, so that the backward needs no tanh.
template <class Scalar>
void gelu(matrix_view<const Scalar> input, matrix_view<Scalar> value, matrix_view<Scalar> slope) {
  const Scalar c = static_cast<Scalar>(std::sqrt(2.0 / std::numbers::pi));
  const Scalar cubic = Scalar(0.044715);
  for (Eigen::Index row = 0; row < input.rows(); ++row) {
    const auto u = input.row(row).array();
    auto p = slope.row(row).array();
    p = Scalar(0.5) * (Scalar(1) + (c * (u + cubic * u.cube())).tanh());
    value.row(row).array() = u * p;
    p += Scalar(2) * p * (Scalar(1) - p) * u * (c * (Scalar(1) + Scalar(3) * cubic * u.square()));
  }
}

}  // namespace train
