// The loss of logits and its gradient. Internal.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "model/algebra.hpp"

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

}  // namespace train
