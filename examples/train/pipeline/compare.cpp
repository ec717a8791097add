#include "pipeline/compare.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <vector>

#include "model/layer.hpp"
#include "model/shards.hpp"

namespace train {
namespace {

struct compared {
  const char* name;
  double got, wanted;
};
std::array<compared, 3> numbers_of(const step_result& result, const step_result& expected) {
  return {{{"loss", result.loss, expected.loss},
           {"gradient norm", result.gradient_norm, expected.gradient_norm},
           {"clipping factor", result.clip_factor, expected.clip_factor}}};
}
std::string differs(const compared& each) {
  char text[120];  // with as many digits as tell any two apart
  std::snprintf(text, sizeof text, "%s is %.17g, the reference's is %.17g", each.name, each.got,
                each.wanted);
  return text;
}

bool differ(std::span<const float> one, std::span<const float> other) {
  return one.size() != other.size() ||
         (!one.empty() && std::memcmp(one.data(), other.data(), one.size_bytes()) != 0);
}

//! Between the two of a schedule that goes both ways.
bool differs_between_replicas(const pipeline& pipelined, int layer,
                              std::span<const float> parameters) {
  return pipelined.replicas() == 2 &&
         differ(pipelined.gathered(layer, layer_part::parameters, 1), parameters);
}
std::string of_replicas(int layer) {
  return "the parameters of layer " + std::to_string(layer) + " differ between its replicas";
}

bool within(double got, double wanted, double apart) {
  return std::abs(got - wanted) <= apart;  // not where either is NaN
}
double largest_of(std::span<const float> values) {
  double largest = 0;
  for (const float value : values)
    largest = std::max(largest, std::abs(static_cast<double>(value)));
  return largest;
}

//! Between data-parallel replicas, which go on with the same bits.
std::string first_difference_of_copies(const pipeline& pipelined) {
  for (int copy = 1; copy < pipelined.copies(); ++copy)
    for (int layer = 0; layer < pipelined.model().layer_count(); ++layer)
      for (int replica = 0; replica < pipelined.replicas(); ++replica)
        for (const layer_part part : {layer_part::parameters, layer_part::gradients}) {
          const std::vector<float> one = pipelined.gathered(layer, part, replica);
          const std::vector<float> other = pipelined.gathered(layer, part, replica, copy);
          if (differ(one, other))
            return "layer " + std::to_string(layer) + " differs between its data-parallel replicas";
        }
  return "";
}

//! Between the shards of a layer: what all of them have of it goes on with the same bits.
std::string first_difference_of_shards(const pipeline& pipelined) {
  const config& model = pipelined.model();
  for (int copy = 0; copy < pipelined.copies(); ++copy)
    for (int layer = 0; layer < model.layer_count(); ++layer)
      for (int replica = 0; replica < pipelined.replicas(); ++replica)
        for (const layer_part part : {layer_part::parameters, layer_part::gradients}) {
          // Of what all have, the last shard's.
          const std::vector<float> whole = pipelined.gathered(layer, part, replica, copy);
          for (int shard = 0; shard + 1 < model.shards; ++shard) {
            const auto one = pipelined.gathered_shard(layer, part, shard, replica, copy);
            if (one.empty()) continue;  // another process compares
            std::vector<float> other = one;
            take_shard<float>(model, layer, shard, whole, other);
            if (differ(one, other))
              return "what all shards of layer " + std::to_string(layer) +
                     " have differs between shards " + std::to_string(shard) + " and " +
                     std::to_string(model.shards - 1);
          }
        }
  return "";
}

}  // namespace

std::string first_difference(const pipeline& pipelined, const step_result& result,
                             const reference* whole, const step_result& expected) {
  if (whole != nullptr)
    for (const compared& each : numbers_of(result, expected))
      if (std::bit_cast<std::uint64_t>(each.got) != std::bit_cast<std::uint64_t>(each.wanted))
        return differs(each);

  for (int layer = 0; layer < pipelined.model().layer_count(); ++layer) {
    const std::string of = " of layer " + std::to_string(layer) + " differ from the reference's";
    const std::vector<float> parameters = pipelined.gathered(layer, layer_part::parameters);
    const std::vector<float> gradients = pipelined.gathered(layer, layer_part::gradients);
    if (whole != nullptr) {
      if (differ(gradients, whole->stage().gradients(layer))) return "the gradients" + of;
      if (differ(parameters, whole->stage().parameters(layer))) return "the parameters" + of;
    }
    if (differs_between_replicas(pipelined, layer, parameters)) return of_replicas(layer);
  }
  return first_difference_of_copies(pipelined);
}

std::string first_difference_above(rounding_bound bound, const pipeline& pipelined,
                                   const step_result& result, const reference* whole,
                                   const step_result& expected) {
  if (whole != nullptr)
    for (const compared& each : numbers_of(result, expected))
      if (!within(each.got, each.wanted, bound.numbers * std::abs(each.wanted)))
        return differs(each);
  const config one = unsharded(pipelined.model());
  for (int layer = 0; layer < one.layer_count(); ++layer) {
    const std::vector<float> all = pipelined.gathered(layer, layer_part::gradients);
    if (whole == nullptr) continue;
    for (const tensor& each : parameter_tensors(one, layer)) {
      const auto got = each.of(std::span(all));
      const auto wanted = each.of(whole->stage().gradients(layer));
      const double largest = largest_of(wanted);
      for (std::size_t at = 0; at < got.size(); ++at)
        if (!within(got[at], wanted[at], bound.gradients * largest))
          return "the gradients of layer " + std::to_string(layer) +
                 " differ from the reference's: " + std::to_string(got[at]) + " for " +
                 std::to_string(wanted[at]);
    }
  }
  const std::string found = first_difference_of_shards(pipelined);
  return found.empty() ? first_difference_of_copies(pipelined) : found;
}

std::string first_wrong_update(const pipeline& pipelined, const step_result& result,
                               std::span<const layer_values> before) {
  const long number = pipelined.steps_done();
  const double rate = pipelined.learning().rate.at(number);
  const adamw_factors<float> by(pipelined.learning().rule, number, rate);
  const config one = unsharded(pipelined.model());
  for (int layer = 0; layer < one.layer_count(); ++layer) {
    const std::vector<float> gradients = pipelined.gathered(layer, layer_part::gradients);
    const layer_values made{pipelined.gathered(layer, layer_part::parameters),
                            pipelined.gathered(layer, layer_part::mean),
                            pipelined.gathered(layer, layer_part::square)};
    if (differs_between_replicas(pipelined, layer, made.parameters)) return of_replicas(layer);
    if (before.empty()) continue;
    layer_values wanted = before[static_cast<std::size_t>(layer)];
    for (const tensor& each : parameter_tensors(one, layer)) {
      const auto parameters = each.of(std::span(wanted.parameters));
      const auto mean = each.of(std::span(wanted.mean));
      const auto square = each.of(std::span(wanted.square));
      update<float>(by, result.clip_factor, each.decayed, parameters, each.of(std::span(gradients)),
                    mean, square);
      const auto wrong = [&](const char* what, const std::vector<float>& all,
                             std::span<const float> expected, auto&& apart) -> std::string {
        const auto got = each.of(std::span(all));
        for (std::size_t at = 0; at < got.size(); ++at)
          if (!within(got[at], expected[at], apart(expected[at])))
            return std::string(what) + " of layer " + std::to_string(layer) +
                   " are not what AdamW makes of the step's gradients: " + std::to_string(got[at]) +
                   " for " + std::to_string(expected[at]);
        return "";
      };
      // The same operations, but rounded once more or less: by some 1e-7 of each operand. Terms of
      // a mean may cancel out, and a step is of about the rate.
      const auto of_largest = [](std::span<const float> of) {
        return [apart = 1e-5 * largest_of(of)](float) { return apart; };
      };
      for (const std::string& found :
           {wrong("the means", made.mean, mean, of_largest(mean)),
            wrong("the squares", made.square, square, of_largest(square)),
            wrong("the parameters", made.parameters, parameters,
                  [&](float value) { return 1e-6 * std::abs(value) + 1e-3 * rate; })})
        if (!found.empty()) return found;
    }
  }
  return "";
}

}  // namespace train
