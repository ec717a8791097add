// Kernels that do one item a thread.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "cuda/matrix.hpp"
#include "model/bfloat16.hpp"
#include "model/optimizer.hpp"
#include "model/row_sums.hpp"

namespace train::cuda {

template <class Held>
struct add_bias {
  matrix_on_gpu<Held> out;
  constant_matrix from;
  const float* bias;
  TRAIN_EVERYWHERE void operator()(std::size_t item) const {
    hold(from[item] + bias[item % out.columns], out[item]);
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
    to[item] =
        rounded(constant_matrix{from.data + one * apart, from.columns, from.stride}[item % items]);
  }
};

//! @tparam More  what is summed over workers is fp32 in any case
template <class Held, class More>
struct residual {
  matrix_on_gpu<Held> out;
  matrix_on_gpu<const Held> from;
  const float* bias;
  matrix_on_gpu<const More> more;
  matrix exact;  // without data: not needed
  TRAIN_EVERYWHERE void operator()(std::size_t item) const {
    const float sum = (in_float(from[item]) + bias[item % out.columns]) + in_float(more[item]);
    hold(sum, out[item]);
    if (exact.data != nullptr) exact[item] = sum;
  }
};

template <class Held>
struct multiply {
  matrix_on_gpu<Held> out;
  constant_matrix from;
  matrix_on_gpu<const Held> by;
  TRAIN_EVERYWHERE void operator()(std::size_t item) const {
    hold(from[item] * in_float(by[item]), out[item]);
  }
};

template <class Held>
struct gelu {
  constant_matrix input;
  matrix_on_gpu<Held> value, slope;
  TRAIN_EVERYWHERE void operator()(std::size_t item) const {
    constexpr float c = 0.797884560802865f, cubic = 0.044715f;  // c = sqrt(2 / pi)
    const float u = input[item];
    const float p = 0.5f * (1.0f + std::tanh(c * (u + cubic * u * u * u)));
    hold(u * p, value[item]);
    hold(p + 2.0f * p * (1.0f - p) * u * (c * (1.0f + 3.0f * cubic * u * u)), slope[item]);
  }
};

//! An item is a column of a part of the rows, from the top to the bottom; add_parts adds them up.
template <class Held>
struct add_rows {
  matrix_on_gpu<const Held> values;
  parts_of_many rows;
  float* sums;
  TRAIN_EVERYWHERE void operator()(std::size_t item) const {
    const std::size_t part = item / values.columns, column = item % values.columns;
    float sum = 0;
    for (std::size_t row = rows.begin(part); row < rows.begin(part + 1); ++row)
      sum += in_float(values.row(row)[column]);
    sums[item] = sum;
  }
};

//! Likewise.
template <class Held>
struct norm_weights {
  matrix_on_gpu<const Held> normalised, output_gradient;
  parts_of_many rows;
  float *gamma_sums, *beta_sums;
  TRAIN_EVERYWHERE void operator()(std::size_t item) const {
    const std::size_t part = item / normalised.columns, column = item % normalised.columns;
    float gamma = 0, beta = 0;
    for (std::size_t row = rows.begin(part); row < rows.begin(part + 1); ++row) {
      const float gradient = in_float(output_gradient.row(row)[column]);
      gamma += gradient * in_float(normalised.row(row)[column]);
      beta += gradient;
    }
    gamma_sums[item] = gamma;
    beta_sums[item] = beta;
  }
};

//! An item is a column.
struct add_parts {
  const float* sums;
  std::size_t parts, columns;
  float* to;
  TRAIN_EVERYWHERE void operator()(std::size_t column) const {
    float sum = to[column];
    for (std::size_t part = 0; part < parts; ++part) sum += sums[part * columns + column];
    to[column] = sum;
  }
};

template <class Held>
struct embed {
  matrix_on_gpu<Held> output;
  const float *table, *positions;
  const std::uint8_t* tokens;
  std::size_t length;
  TRAIN_EVERYWHERE void operator()(std::size_t item) const {
    const std::size_t row = item / output.columns, column = item % output.columns;
    hold(table[tokens[row] * output.columns + column] +
             positions[row % length * output.columns + column],
         output[item]);
  }
};

//! An item is an element of the table: it finds its token's rows, in their order, so that no two
//! threads add to one element.
template <class Held>
struct embed_tokens {
  matrix_on_gpu<const Held> output_gradient;
  float* table;
  const std::uint8_t* tokens;
  std::size_t rows;
  TRAIN_EVERYWHERE void operator()(std::size_t item) const {
    const std::size_t token = item / output_gradient.columns,
                      column = item % output_gradient.columns;
    float sum = table[item];
    for (std::size_t row = 0; row < rows; ++row)
      if (tokens[row] == token) sum += in_float(output_gradient.row(row)[column]);
    table[item] = sum;
  }
};

//! So does an element of the positions.
template <class Held>
struct embed_positions {
  matrix_on_gpu<const Held> output_gradient;
  float* positions;
  std::size_t rows, length;
  TRAIN_EVERYWHERE void operator()(std::size_t item) const {
    const std::size_t first = item / output_gradient.columns,
                      column = item % output_gradient.columns;
    float sum = positions[item];
    for (std::size_t row = first; row < rows; row += length)
      sum += in_float(output_gradient.row(row)[column]);
    positions[item] = sum;
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

//! A row's loss, for add_losses, and what math::summed_loss leaves of its sums.
struct summed_loss {
  float* sums;
  double factor;
  double* losses;
  TRAIN_EVERYWHERE void operator()(std::size_t row) const {
    float* const of = sums + sums_of_row * row;
    const auto sum = static_cast<double>(of[1]);
    losses[row] = std::log(sum) + static_cast<double>(of[0] - of[2]);
    of[1] = static_cast<float>(factor / sum);
    of[2] = static_cast<float>(factor);
  }
};

//! See train::math::finish; there is one item.
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

}  // namespace train::cuda
