// The trainer's kernels, but for products. Each is a plain struct that does one item or one row of
// the work, on a GPU or on the host: what it computes is train::math's function of the same name.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "cuda/team.hpp"
#include "model/bfloat16.hpp"
#include "model/optimizer.hpp"

namespace train::cuda {

//! A row-major matrix of the GPU's; Value may be const.
template <class Value>
struct matrix_on_gpu {
  Value* data;
  std::size_t columns, stride;

  TRAIN_EVERYWHERE Value* row(std::size_t at) const { return data + at * stride; }
  //! The element with this number, row by row.
  TRAIN_EVERYWHERE Value& operator[](std::size_t item) const {
    return data[item / columns * stride + item % columns];
  }
};
using matrix = matrix_on_gpu<float>;
using constant_matrix = matrix_on_gpu<const float>;

// One item a thread. -------------------------------------------------------------------------

struct add_bias {
  matrix out;
  const float* bias;
  TRAIN_EVERYWHERE void operator()(std::size_t item) const {
    out[item] += bias[item % out.columns];
  }
};

struct round {
  constant_matrix from;
  matrix_on_gpu<bfloat16> to;
  TRAIN_EVERYWHERE void operator()(std::size_t item) const { to[item] = rounded(from[item]); }
};

//! Of matrices of one shape and so many items, `apart` scalars from one to the next; one after the
//! other, without gaps.
struct round_batch {
  constant_matrix from;
  std::size_t items, apart;
  bfloat16* to;
  TRAIN_EVERYWHERE void operator()(std::size_t item) const {
    const std::size_t one = item / items;
    to[item] = rounded(constant_matrix{from.data + one * apart, from.columns, from.stride}[item % items]);
  }
};

struct widen {
  matrix_on_gpu<const bfloat16> from;
  matrix to;
  TRAIN_EVERYWHERE void operator()(std::size_t item) const { to[item] = widened(from[item]); }
};

struct residual {
  matrix out;
  constant_matrix from;
  const float* bias;
  constant_matrix more;
  TRAIN_EVERYWHERE void operator()(std::size_t item) const {
    out[item] = (from[item] + bias[item % out.columns]) + more[item];
  }
};

struct multiply {
  matrix out;
  constant_matrix by;
  TRAIN_EVERYWHERE void operator()(std::size_t item) const { out[item] *= by[item]; }
};

struct gelu {
  constant_matrix input;
  matrix value, slope;
  TRAIN_EVERYWHERE void operator()(std::size_t item) const {
    constexpr float c = 0.797884560802865f, cubic = 0.044715f;  // c = sqrt(2 / pi)
    const float u = input[item];
    const float p = 0.5f * (1.0f + std::tanh(c * (u + cubic * u * u * u)));
    value[item] = u * p;
    slope[item] = p + 2.0f * p * (1.0f - p) * u * (c * (1.0f + 3.0f * cubic * u * u));
  }
};

//! An item is a column: its rows from the top to the bottom.
struct add_rows {
  float* sums;
  constant_matrix values;
  std::size_t rows;
  TRAIN_EVERYWHERE void operator()(std::size_t column) const {
    float sum = sums[column];
    for (std::size_t row = 0; row < rows; ++row) sum += values.row(row)[column];
    sums[column] = sum;
  }
};

struct norm_weights {
  constant_matrix normalised, output_gradient;
  float *gamma_gradient, *beta_gradient;
  std::size_t rows;
  TRAIN_EVERYWHERE void operator()(std::size_t column) const {
    float gamma = gamma_gradient[column], beta = beta_gradient[column];
    for (std::size_t row = 0; row < rows; ++row) {
      gamma += output_gradient.row(row)[column] * normalised.row(row)[column];
      beta += output_gradient.row(row)[column];
    }
    gamma_gradient[column] = gamma;
    beta_gradient[column] = beta;
  }
};

struct embed {
  matrix output;
  const float *table, *positions;
  const std::uint8_t* tokens;
  std::size_t length;
  TRAIN_EVERYWHERE void operator()(std::size_t item) const {
    const std::size_t row = item / output.columns, column = item % output.columns;
    output[item] = table[tokens[row] * output.columns + column] +
                   positions[row % length * output.columns + column];
  }
};

struct embed_weights {
  constant_matrix output_gradient;
  float *table, *positions;
  const std::uint8_t* tokens;
  std::size_t rows, length;
  TRAIN_EVERYWHERE void operator()(std::size_t column) const {
    const std::size_t width = output_gradient.columns;
    for (std::size_t row = 0; row < rows; ++row) {
      const float gradient = output_gradient.row(row)[column];
      table[tokens[row] * width + column] += gradient;
      positions[row % length * width + column] += gradient;
    }
  }
};

struct add {
  const float *left, *right;
  float* to;
  TRAIN_EVERYWHERE void operator()(std::size_t item) const { to[item] = left[item] + right[item]; }
};

//! Nothing where the factor is not above 0: the gradient's norm was not finite.
struct update {
  float* parameters;
  const float* gradients;
  float *mean, *square;
  const double* clip_factor;
  const adamw_factors<float>* by;
  bool decayed;
  TRAIN_EVERYWHERE void operator()(std::size_t item) const {
    if (!(*clip_factor > 0)) return;
    const float gradient = gradients[item] * static_cast<float>(*clip_factor);
    const float m = by->beta1 * mean[item] + (1.0f - by->beta1) * gradient;
    const float v = by->beta2 * square[item] + (1.0f - by->beta2) * (gradient * gradient);
    const float keep = decayed ? by->keep : 1.0f;
    mean[item] = m;
    square[item] = v;
    parameters[item] =
        keep * parameters[item] - by->rate * m / (std::sqrt(v * by->unbias) + by->epsilon);
  }
};

// One row a team. ----------------------------------------------------------------------------

struct norm {
  const float *gamma, *beta;
  constant_matrix input;
  matrix normalised;
  float* inverse_deviation;
  matrix output;
  template <class Team>
  TRAIN_EVERYWHERE void operator()(const Team& team, std::size_t row) const {
    const std::size_t width = input.columns;
    const float* const x = input.row(row);
    float* const unit = normalised.row(row);
    float* const out = output.row(row);
    const auto count = static_cast<float>(width);
    const float mean = team.template sum<float>(width, [&](std::size_t at) { return x[at]; }) / count;
    const auto squared = [&](std::size_t at) { return (x[at] - mean) * (x[at] - mean); };
    const float variance = team.template sum<float>(width, squared) / count;
    const float inverse = 1.0f / std::sqrt(variance + 1e-5f);
    if (team.first()) inverse_deviation[row] = inverse;
    team.each(width, [&](std::size_t at) {
      const float value = (x[at] - mean) * inverse;
      unit[at] = value;
      out[at] = value * gamma[at] + beta[at];
    });
  }
};

struct norm_back {
  const float* gamma;
  constant_matrix normalised;
  const float* inverse_deviation;
  constant_matrix output_gradient, residual_gradient;
  matrix input_gradient;
  template <class Team>
  TRAIN_EVERYWHERE void operator()(const Team& team, std::size_t row) const {
    const std::size_t width = normalised.columns;
    const float *const unit = normalised.row(row), *const from = output_gradient.row(row);
    const auto count = static_cast<float>(width);
    const auto scaled = [&](std::size_t at) { return from[at] * gamma[at]; };
    const float mean = team.template sum<float>(width, scaled) / count;
    const auto product = [&](std::size_t at) { return scaled(at) * unit[at]; };
    const float along = team.template sum<float>(width, product) / count;
    team.each(width, [&](std::size_t at) {
      input_gradient.row(row)[at] =
          residual_gradient.row(row)[at] +
          inverse_deviation[row] * (scaled(at) - mean - unit[at] * along);
    });
  }
};

struct softmax {
  matrix scores;
  std::size_t rows, before;
  float scale;
  template <class Team>
  TRAIN_EVERYWHERE void operator()(const Team& team, std::size_t row) const {
    float* const values = scores.row(row);
    const std::size_t seen = before + row % rows + 1;
    const float highest = team.largest(seen, [&](std::size_t at) { return values[at]; });
    team.meet();
    team.each(seen, [&](std::size_t at) { values[at] = std::exp((values[at] - highest) * scale); });
    team.meet();
    const float inverse =
        1.0f / team.template sum<float>(seen, [&](std::size_t at) { return values[at]; });
    team.each(scores.columns,
              [&](std::size_t at) { values[at] = at < seen ? values[at] * inverse : 0.0f; });
  }
};

struct softmax_back {
  matrix gradients;
  constant_matrix weights;
  std::size_t rows, before;
  float scale;
  template <class Team>
  TRAIN_EVERYWHERE void operator()(const Team& team, std::size_t row) const {
    float* const values = gradients.row(row);
    const float* const weight = weights.row(row);
    const std::size_t seen = before + row % rows + 1;
    const float along =
        team.template sum<float>(seen, [&](std::size_t at) { return values[at] * weight[at]; });
    team.each(gradients.columns, [&](std::size_t at) {
      values[at] = at < seen ? weight[at] * (values[at] - along) * scale : 0.0f;
    });
  }
};

//! The rows' losses, for add_losses; the logits become their gradients.
struct cross_entropy {
  matrix logits;
  const std::uint8_t* targets;
  double factor;
  double* losses;
  template <class Team>
  TRAIN_EVERYWHERE void operator()(const Team& team, std::size_t row) const {
    float* const values = logits.row(row);
    const std::size_t target = targets[row];
    const float right = values[target];
    const float highest = team.largest(logits.columns, [&](std::size_t at) { return values[at]; });
    team.meet();
    team.each(logits.columns,
              [&](std::size_t at) { values[at] = std::exp(values[at] - highest); });
    team.meet();
    const float sum =
        team.template sum<float>(logits.columns, [&](std::size_t at) { return values[at]; });
    if (team.first())
      losses[row] = std::log(static_cast<double>(sum)) + static_cast<double>(highest - right);
    const auto scale = static_cast<float>(factor / static_cast<double>(sum));
    team.each(logits.columns, [&](std::size_t at) {
      values[at] = values[at] * scale - (at == target ? static_cast<float>(factor) : 0.0f);
    });
  }
};

//! Of one row: all.
struct add_losses {
  const double* losses;
  std::size_t rows;
  double factor;
  double* loss;
  template <class Team>
  TRAIN_EVERYWHERE void operator()(const Team& team, std::size_t) const {
    const double sum =
        team.template sum<double>(rows, [&](std::size_t at) { return losses[at]; });
    if (team.first()) *loss = sum * factor;
  }
};

struct add_squares {
  const float* values;
  std::size_t count;
  double* sum;
  template <class Team>
  TRAIN_EVERYWHERE void operator()(const Team& team, std::size_t) const {
    const double more = team.template sum<double>(count, [&](std::size_t at) {
      return static_cast<double>(values[at]) * static_cast<double>(values[at]);
    });
    if (team.first()) *sum += more;
  }
};

//! See train::math::finish; one item.
struct finish {
  const double* norms;
  std::size_t norm_count;
  const double* losses;
  std::size_t loss_count;
  double limit;
  double *loss, *gradient_norm, *clip_factor;
  TRAIN_EVERYWHERE void operator()(std::size_t) const {
    double squares = 0, sum = 0;
    for (std::size_t at = 0; at < norm_count; ++at) squares += norms[at];
    for (std::size_t at = 0; at < loss_count; ++at) sum += losses[at];
    const double length = std::sqrt(squares);
    *loss = sum;
    *gradient_norm = length;
    // Behind the comparison with what is not finite, nothing is updated.
    *clip_factor = !(length < 1e300) ? 0.0 : length > limit ? limit / length : 1.0;
  }
};

//! Calls use(name of a kernel, its type) for each: where they are launched, and run without a GPU.
//! The first list's kernels do items, the second one's rows.
template <class... Kernel>
struct kernel_list {};
using item_kernels = kernel_list<add_bias, round, round_batch, widen, residual, multiply, gelu, add_rows, norm_weights,
                                 embed, embed_weights, add, update, finish>;
using row_kernels =
    kernel_list<norm, norm_back, softmax, softmax_back, cross_entropy, add_losses, add_squares>;

}  // namespace train::cuda
