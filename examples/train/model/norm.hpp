// Layer normalisation over the features of each row. Internal.
#pragma once

#include "model/algebra.hpp"

namespace train {

//! normalised = (x - mean) / sqrt(variance + 1e-5), output = normalised * gamma + beta.
//! Keeps `normalised` [rows, width] and `inverse_deviation` [rows] for the backward.
template <class Scalar>
void norm_forward(const Scalar* gamma, const Scalar* beta, matrix_view<const Scalar> input,
                  matrix_view<Scalar> normalised, Scalar* inverse_deviation,
                  matrix_view<Scalar> output) {
  const auto width = static_cast<std::size_t>(input.cols());
  const auto scale = row_vector(gamma, width).array();
  const auto shift = row_vector(beta, width).array();
  for (Eigen::Index row = 0; row < input.rows(); ++row) {
    auto centred = normalised.row(row).array();
    centred = input.row(row).array() - input.row(row).mean();
    const Scalar variance = centred.square().mean();
    inverse_deviation[row] = Scalar(1) / std::sqrt(variance + Scalar(1e-5));
    centred *= inverse_deviation[row];
    output.row(row).array() = centred * scale + shift;
  }
}

//! input_gradient = residual_gradient + the norm's backward; the two may be the same memory.
template <class Scalar>
void norm_backward_input(const Scalar* gamma, matrix_view<const Scalar> normalised,
                         const Scalar* inverse_deviation, matrix_view<const Scalar> output_gradient,
                         matrix_view<const Scalar> residual_gradient,
                         matrix_view<Scalar> input_gradient) {
  const auto scale = row_vector(gamma, static_cast<std::size_t>(normalised.cols())).array();
  for (Eigen::Index row = 0; row < normalised.rows(); ++row) {
    const auto unit = normalised.row(row).array();
    const auto scaled = output_gradient.row(row).array() * scale;
    const Scalar mean = scaled.mean();
    const Scalar along = (scaled * unit).mean();
    input_gradient.row(row).array() = residual_gradient.row(row).array() +
                                      inverse_deviation[row] * (scaled - mean - unit * along);
  }
}

//! Adds to the gradients of gamma and beta.
template <class Scalar>
void norm_backward_weight(matrix_view<const Scalar> normalised,
                          matrix_view<const Scalar> output_gradient, Scalar* gamma_gradient,
                          Scalar* beta_gradient) {
  auto gamma = row_vector(gamma_gradient, static_cast<std::size_t>(normalised.cols())).array();
  for (Eigen::Index row = 0; row < normalised.rows(); ++row) {
    gamma += output_gradient.row(row).array() * normalised.row(row).array();
  }
  add_rows(beta_gradient, output_gradient);
}

}  // namespace train
