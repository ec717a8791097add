// What the model's tests share: random buffers, poison, comparison to the bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "model/random.hpp"
#include "model/stage.hpp"
#include "model/tensor.hpp"

namespace model_test {

//! Small, and odd enough that no size is a multiple of a vector's: padding and tails are met.
inline train::config small(bool tied) {
  return {.layers = 2,
          .width = 6,
          .heads = 3,
          .context = 5,
          .microbatch = 2,
          .vocabulary = 11,
          .expansion = 3,
          .tied = tied};
}

//! Large enough for Eigen's blocked products.
inline train::config medium(bool tied) {
  return {.layers = 2,
          .width = 48,
          .heads = 2,
          .context = 40,
          .microbatch = 2,
          .vocabulary = 256,
          .expansion = 4,
          .tied = tied};
}

template <class Scalar>
void fill_normal(std::span<Scalar> values, double deviation, std::uint64_t key) {
  train::random_stream numbers(key);
  for (Scalar& value : values) value = static_cast<Scalar>(deviation * numbers.normal());
}

//! What must never be read is set to NaN, which any sum carries on.
template <class Scalar>
void poison(std::span<Scalar> values) {
  for (Scalar& value : values) value = std::numeric_limits<Scalar>::quiet_NaN();
}

inline std::vector<std::uint8_t> tokens(const train::config& model, std::uint64_t key) {
  train::random_stream numbers(key);
  std::vector<std::uint8_t> result(model.rows());
  for (auto& token : result) {
    token = static_cast<std::uint8_t>(numbers.next() % static_cast<unsigned>(model.vocabulary));
  }
  return result;
}

template <class Scalar>
bool same_bits(std::span<const Scalar> left, std::span<const Scalar> right) {
  return left.size() == right.size() &&
         std::memcmp(left.data(), right.data(), left.size_bytes()) == 0;
}

//! The largest difference, over the largest value; what is not finite, as it is.
template <class Scalar>
double distance(std::span<const Scalar> one, std::span<const Scalar> other) {
  REQUIRE(one.size() == other.size());
  double most = 0, scale = 0;
  for (std::size_t at = 0; at < one.size(); ++at) {
    const double difference = static_cast<double>(one[at]) - static_cast<double>(other[at]);
    if (!std::isfinite(difference)) return std::abs(difference);
    most = std::max(most, std::abs(difference));
    scale = std::max(scale, std::abs(static_cast<double>(other[at])));
  }
  return scale == 0 ? most : most / scale;
}

inline std::string name(const train::config& model) {
  return "layers " + std::to_string(model.layers) + ", width " + std::to_string(model.width) +
         (model.tied ? ", tied" : ", untied");
}

}  // namespace model_test
