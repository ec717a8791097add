#include "model/optimizer.hpp"

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

#include "model/algebra.hpp"

namespace train {
namespace {

void require(bool rule, const char* name, double value, const char* text) {
  if (!rule) {
    throw std::invalid_argument(std::string(name) + " is " + std::to_string(value) + ", it must " +
                                text);
  }
}

}  // namespace

void adamw::check() const {
  require(beta1 >= 0 && beta1 < 1, "adamw: beta1", beta1, "be in [0, 1)");
  require(beta2 >= 0 && beta2 < 1, "adamw: beta2", beta2, "be in [0, 1)");
  require(epsilon > 0 && std::isfinite(epsilon), "adamw: epsilon", epsilon, "be above 0");
  require(weight_decay >= 0 && std::isfinite(weight_decay), "adamw: weight_decay", weight_decay,
          "not be below 0");
}

template <class Scalar>
adamw_factors<Scalar>::adamw_factors(const adamw& rule, long step, double learning_rate) {
  const double count = static_cast<double>(step);
  beta1 = static_cast<Scalar>(rule.beta1);
  beta2 = static_cast<Scalar>(rule.beta2);
  rate = static_cast<Scalar>(learning_rate / (1 - std::pow(rule.beta1, count)));
  unbias = static_cast<Scalar>(1 / (1 - std::pow(rule.beta2, count)));
  keep = static_cast<Scalar>(1 - learning_rate * rule.weight_decay);
  epsilon = static_cast<Scalar>(rule.epsilon);
}

template struct adamw_factors<float>;
template struct adamw_factors<double>;

template <class Scalar>
void update(const adamw_factors<Scalar>& by, double clip_factor, bool decayed,
            std::span<Scalar> parameters, std::span<const Scalar> gradients, std::span<Scalar> mean,
            std::span<Scalar> square) {
  const std::size_t size = parameters.size();
  auto value = row_vector(parameters.data(), size).array();
  auto m = row_vector(mean.data(), size).array();
  auto v = row_vector(square.data(), size).array();
  const auto gradient =
      row_vector(gradients.data(), size).array() * static_cast<Scalar>(clip_factor);

  const Scalar keep = decayed ? by.keep : Scalar(1);
  m = by.beta1 * m + (1 - by.beta1) * gradient;
  v = by.beta2 * v + (1 - by.beta2) * gradient.square();
  value = keep * value - by.rate * m / ((v * by.unbias).sqrt() + by.epsilon);
}

template void update(const adamw_factors<float>&, double, bool, std::span<float>,
                     std::span<const float>, std::span<float>, std::span<float>);
template void update(const adamw_factors<double>&, double, bool, std::span<double>,
                     std::span<const double>, std::span<double>, std::span<double>);

void learning_rate_schedule::check() const {
  require(peak > 0 && std::isfinite(peak), "learning rate: peak", peak, "be above 0");
  require(floor >= 0 && floor <= peak, "learning rate: floor", floor, "be between 0 and the peak");
  require(warmup >= 0, "learning rate: warmup", static_cast<double>(warmup), "not be below 0");
  require(steps >= 1 && steps >= warmup, "learning rate: steps", static_cast<double>(steps),
          "be at least 1 and at least the warm-up");
}

double learning_rate_schedule::at(long step) const {
  if (step < warmup) return peak * static_cast<double>(step) / static_cast<double>(warmup);
  if (step >= steps) return warmup == steps ? peak : floor;
  const double done = static_cast<double>(step - warmup) / static_cast<double>(steps - warmup);
  return floor + (peak - floor) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

double global_norm(std::span<const double> squared_norms) {
  double sum = 0;
  for (const double part : squared_norms) sum += part;
  return std::sqrt(sum);
}

double clip_factor(double norm, double limit) {
  require(limit > 0, "gradient norm limit", limit, "be above 0");
  if (!std::isfinite(norm)) {
    throw std::runtime_error(
        "the gradient's global norm is not finite: training has diverged (try a lower learning "
        "rate)");
  }
  return norm > limit ? limit / norm : 1.0;
}

}  // namespace train
