// Kernels that do one row a team.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "cuda/matrix.hpp"
#include "cuda/team.hpp"
#include "model/bfloat16.hpp"
#include "model/row_sums.hpp"

namespace train::cuda {

//! @tparam In  what has not been rounded yet is fp32 in any case
template <class In, class Held>
struct norm {
  const float *gamma, *beta;
  matrix_on_gpu<const In> input;
  matrix_on_gpu<Held> normalised;
  float* inverse_deviation;
  matrix_on_gpu<Held> output;
  template <class Team>
  TRAIN_EVERYWHERE void operator()(const Team& team, std::size_t row) const {
    const std::size_t width = input.columns;
    const In* const values = input.row(row);
    const auto x = [&](std::size_t at) { return in_float(values[at]); };
    Held* const unit = normalised.row(row);
    Held* const out = output.row(row);
    const auto count = static_cast<float>(width);
    const float mean = team.template sum<float>(width, x) / count;
    const auto squared = [&](std::size_t at) { return (x(at) - mean) * (x(at) - mean); };
    const float variance = team.template sum<float>(width, squared) / count;
    const float inverse = 1.0f / std::sqrt(variance + 1e-5f);
    if (team.first()) inverse_deviation[row] = inverse;
    team.each(width, [&](std::size_t at) {
      const float value = (x(at) - mean) * inverse;
      hold(value, unit[at]);
      hold(value * gamma[at] + beta[at], out[at]);
    });
  }
};

template <class Held>
struct norm_back {
  const float* gamma;
  matrix_on_gpu<const Held> normalised;
  const float* inverse_deviation;
  matrix_on_gpu<const Held> output_gradient, residual_gradient;
  matrix_on_gpu<Held> input_gradient;
  template <class Team>
  TRAIN_EVERYWHERE void operator()(const Team& team, std::size_t row) const {
    const std::size_t width = normalised.columns;
    const Held *const held = normalised.row(row), *const from = output_gradient.row(row);
    const auto count = static_cast<float>(width);
    const auto unit = [&](std::size_t at) { return in_float(held[at]); };
    const auto scaled = [&](std::size_t at) { return in_float(from[at]) * gamma[at]; };
    const float mean = team.template sum<float>(width, scaled) / count;
    const auto product = [&](std::size_t at) { return scaled(at) * unit(at); };
    const float along = team.template sum<float>(width, product) / count;
    team.each(width, [&](std::size_t at) {
      hold(in_float(residual_gradient.row(row)[at]) +
               inverse_deviation[row] * (scaled(at) - mean - unit(at) * along),
           input_gradient.row(row)[at]);
    });
  }
};

template <class Held>
struct softmax {
  matrix scores;
  matrix_on_gpu<Held> weights;
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
    team.each(scores.columns, [&](std::size_t at) {
      hold(at < seen ? values[at] * inverse : 0.0f, weights.row(row)[at]);
    });
  }
};

template <class Held>
struct softmax_back {
  constant_matrix gradients;
  matrix_on_gpu<const Held> weights;
  matrix_on_gpu<Held> score_gradients;
  std::size_t rows, before;
  float scale;
  template <class Team>
  TRAIN_EVERYWHERE void operator()(const Team& team, std::size_t row) const {
    const float* const values = gradients.row(row);
    const auto weight = [&](std::size_t at) { return in_float(weights.row(row)[at]); };
    const std::size_t seen = before + row % rows + 1;
    const float along =
        team.template sum<float>(seen, [&](std::size_t at) { return values[at] * weight(at); });
    team.each(gradients.columns, [&](std::size_t at) {
      hold(at < seen ? weight(at) * (values[at] - along) * scale : 0.0f,
           score_gradients.row(row)[at]);
    });
  }
};

//! The rows' losses, for add_losses, and the logits' gradient.
template <class Held>
struct cross_entropy {
  matrix logits;
  matrix_on_gpu<Held> gradient;
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
    team.each(logits.columns, [&](std::size_t at) { values[at] = std::exp(values[at] - highest); });
    team.meet();
    const float sum =
        team.template sum<float>(logits.columns, [&](std::size_t at) { return values[at]; });
    if (team.first())
      losses[row] = std::log(static_cast<double>(sum)) + static_cast<double>(highest - right);
    const auto scale = static_cast<float>(factor / static_cast<double>(sum));
    team.each(logits.columns, [&](std::size_t at) {
      hold(values[at] * scale - (at == target ? static_cast<float>(factor) : 0.0f),
           gradient.row(row)[at]);
    });
  }
};

struct row_sums {
  constant_matrix logits;
  const std::uint8_t* targets;
  std::size_t first;
  const float* before;
  float* sums;
  template <class Team>
  TRAIN_EVERYWHERE void operator()(const Team& team, std::size_t row) const {
    const float* const values = logits.row(row);
    const float* const earlier = before == nullptr ? nullptr : before + sums_of_row * row;
    float highest = team.largest(logits.columns, [&](std::size_t at) { return values[at]; });
    if (earlier != nullptr && earlier[0] > highest) highest = earlier[0];
    float sum = team.template sum<float>(
        logits.columns, [&](std::size_t at) { return std::exp(values[at] - highest); });
    if (!team.first()) return;
    if (earlier != nullptr) sum += earlier[1] * std::exp(earlier[0] - highest);
    const std::size_t target = targets[row];
    const bool here = target >= first && target - first < logits.columns;
    float* const to = sums + sums_of_row * row;
    to[0] = highest;
    to[1] = sum;
    to[2] = here ? values[target - first] : earlier != nullptr ? earlier[2] : 0.0f;
  }
};

template <class Held>
struct logits_back {
  constant_matrix logits;
  matrix_on_gpu<Held> gradient;
  const std::uint8_t* targets;
  std::size_t first;
  const float* sums;
  template <class Team>
  TRAIN_EVERYWHERE void operator()(const Team& team, std::size_t row) const {
    const float* const values = logits.row(row);
    const float* const of = sums + sums_of_row * row;
    const std::size_t target = targets[row];
    team.each(logits.columns, [&](std::size_t at) {
      hold(std::exp(values[at] - of[0]) * of[1] - (first + at == target ? of[2] : 0.0f),
           gradient.row(row)[at]);
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
    const double sum = team.template sum<double>(rows, [&](std::size_t at) { return losses[at]; });
    if (team.first()) *loss = sum * factor;
  }
};

//! A row is a part of the values; add_squared adds them up.
struct add_squares {
  const float* values;
  parts_of_many of;
  double* sums;
  template <class Team>
  TRAIN_EVERYWHERE void operator()(const Team& team, std::size_t part) const {
    const float* const mine = values + of.begin(part);
    const double sum =
        team.template sum<double>(of.begin(part + 1) - of.begin(part), [&](std::size_t at) {
          return static_cast<double>(mine[at]) * static_cast<double>(mine[at]);
        });
    if (team.first()) sums[part] = sum;
  }
};

//! Of one row: all.
struct add_squared {
  const double* sums;
  std::size_t parts;
  double* to;
  template <class Team>
  TRAIN_EVERYWHERE void operator()(const Team& team, std::size_t) const {
    const double sum = team.template sum<double>(parts, [&](std::size_t at) { return sums[at]; });
    if (team.first()) *to += sum;
  }
};

}  // namespace train::cuda
