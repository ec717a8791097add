// The loss of logits and its gradient. Internal.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/algebra.hpp"
#include "model/row_sums.hpp"

namespace train {

//! The cross entropy of each row of logits and its target, summed, times a factor. The logits make
//! room for their gradient, (softmax - one-hot target) * factor.
template <class Scalar>
double cross_entropy(Scalar* logits, std::span<const std::uint8_t> targets, std::size_t vocabulary,
                     double factor) {
  double loss = 0;
  for (std::size_t token = 0; token < targets.size(); ++token) {
    auto row = row_vector(logits + token * vocabulary, vocabulary).array();
    const Scalar target = row[targets[token]];
    const Scalar highest = row.maxCoeff();
    row = (row - highest).exp();
    const Scalar sum = row.sum();
    loss += std::log(static_cast<double>(sum)) + static_cast<double>(highest - target);
    row *= static_cast<Scalar>(factor / static_cast<double>(sum));
    row[targets[token]] -= static_cast<Scalar>(factor);
  }
  return loss * factor;
}

//! math::row_sums of one row.
template <class Scalar>
void add_row_sums(std::span<const Scalar> logits, std::size_t target, std::size_t first,
                  const Scalar* before, Scalar* sums) {
  const auto row = row_vector(logits.data(), logits.size()).array();
  Scalar highest = row.maxCoeff();
  if (before != nullptr) highest = std::max(highest, before[0]);
  Scalar sum = (row - highest).exp().sum();
  if (before != nullptr) sum += before[1] * std::exp(before[0] - highest);
  const bool here = target >= first && target - first < logits.size();
  const Scalar right = here ? logits[target - first] : before != nullptr ? before[2] : Scalar(0);
  sums[0] = highest;
  sums[1] = sum;
  sums[2] = right;
}

//! math::summed_loss.
template <class Scalar>
double summed_loss(Scalar* sums, std::size_t rows, double factor) {
  double loss = 0;
  for (std::size_t row = 0; row < rows; ++row, sums += sums_of_row) {
    const auto sum = static_cast<double>(sums[1]);
    loss += std::log(sum) + static_cast<double>(sums[0] - sums[2]);
    sums[1] = static_cast<Scalar>(factor / sum);
    sums[2] = static_cast<Scalar>(factor);
  }
  return loss * factor;
}

//! math::logits_back of one row.
template <class Scalar>
void row_logits_back(std::span<Scalar> logits, std::size_t target, std::size_t first,
                     const Scalar* sums) {
  auto row = row_vector(logits.data(), logits.size()).array();
  row = (row - sums[0]).exp() * sums[1];
  if (target >= first && target - first < logits.size()) logits[target - first] -= sums[2];
}

}  // namespace train
