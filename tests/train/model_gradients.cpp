// Every gradient against finite differences, in double, where the check is sharp: with a step of
// 1e-5 a central difference of these functions is good to about 1e-10.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "model_support.hpp"

using namespace train;
using model_test::fill_normal;
using model_test::poison;

namespace {

constexpr double step = 1e-5;
constexpr double tolerance = 1e-7;
constexpr double loss_scale = 0.75;

// A stage with all it needs, and a scalar function of it: the loss where it has the head,
// otherwise the sum of output * direction for a fixed random direction.
struct probe {
  basic_stage<double> stage;
  aligned_array<double> stash, input, output, direction, input_gradient;
  std::vector<std::uint8_t> tokens, targets;

  probe(const config& model, int first, int last)
      : stage(model, first, last, 1),
        stash(stage.stash_scalars()),
        input(model.activation_scalars()),
        output(model.activation_scalars()),
        direction(model.activation_scalars()),
        input_gradient(model.activation_scalars()),
        tokens(model_test::tokens(model, 5)),
        targets(model_test::tokens(model, 6)) {
    // Away from the first values, where norms are plain, biases zero and all slopes small.
    for (int layer = first; layer < last; ++layer) {
      fill_normal(stage.parameters(layer), 0.4, 10 + static_cast<unsigned>(layer));
    }
    fill_normal(input.span(), 1.0, 2);
    fill_normal(direction.span(), 1.0, 3);
  }

  double value() {
    poison(stash.span());
    const double loss =
        stage.forward(tokens, targets, input.span(), output.span(), stash.span(), loss_scale);
    if (stage.has_head()) return loss;
    double sum = 0;
    for (std::size_t at = 0; at < output.span().size(); ++at) {
      sum += output.span()[at] * direction.span()[at];
    }
    return sum;
  }

  double slope(double& variable) {
    const double before = variable;
    variable = before + step;
    const double above = value();
    variable = before - step;
    const double below = value();
    variable = before;
    return (above - below) / (2 * step);
  }

  void differentiate() {
    value();
    stage.zero_gradients();
    stage.backward_input(direction.span(), input_gradient.span(), stash.span());
    stage.backward_weight(stash.span());
  }
};

// The largest difference between gradient and slope over a tensor.
double worst(probe& it, std::span<double> variables, std::span<const double> gradients,
             double& largest) {
  double error = 0;
  for (std::size_t at = 0; at < variables.size(); ++at) {
    error = std::max(error, std::abs(it.slope(variables[at]) - gradients[at]));
    largest = std::max(largest, std::abs(gradients[at]));
  }
  return error;
}

void check_layers(const config& model, int first, int last) {
  CAPTURE(first);
  CAPTURE(last);
  CAPTURE(model_test::name(model));
  probe it(model, first, last);
  it.differentiate();
  if (first > 0) {
    double largest = 0;
    CHECK(worst(it, it.input.span(), it.input_gradient.span(), largest) < tolerance);
    CHECK(largest > 1e-3);
  }
  for (int layer = first; layer < last; ++layer) {
    const auto parts = parameter_tensors(model, layer);
    for (std::size_t part = 0; part < parts.size(); ++part) {
      CAPTURE(layer);
      CAPTURE(part);
      double largest = 0;
      CHECK(worst(it, parts[part].of(it.stage.parameters(layer)),
                  parts[part].of(std::as_const(it.stage).gradients(layer)), largest) < tolerance);
      CHECK(largest > 1e-3);  // a gradient that is zero throughout would show nothing
    }
  }
}

}  // namespace

TEST_CASE("each layer's gradients equal finite differences") {
  for (const bool tied : {false, true}) {
    const config model = model_test::small(tied);
    for (int layer = 0; layer < model.layer_count(); ++layer) check_layers(model, layer, layer + 1);
  }
}

TEST_CASE("gradients through runs of layers equal finite differences") {
  const config model = model_test::small(false);
  check_layers(model, 0, model.layer_count());
  check_layers(model, 0, 2);
  check_layers(model, 1, 3);
  check_layers(model, 2, 4);
}

TEST_CASE("odd shapes: one token, one head, one feature per head, one sequence") {
  config model = model_test::small(false);
  model.layers = 1;
  model.microbatch = 1;
  model.context = 1;
  check_layers(model, 0, 1);
  check_layers(model, 2, 3);
  // With one token, attention's weights are 1 whatever queries and keys are: only the whole block's
  // input gradient can be asked to differ from zero.
  probe single(model, 1, 2);
  single.differentiate();
  double largest = 0;
  CHECK(worst(single, single.input.span(), single.input_gradient.span(), largest) < tolerance);
  model.context = 3;
  model.heads = 1;
  check_layers(model, 1, 2);
  model.heads = model.width;
  check_layers(model, 1, 2);
}

TEST_CASE("a tied model's joined gradient is the gradient of the one table") {
  const config model = model_test::small(true);
  probe it(model, 0, model.layer_count());
  const auto table_of = [&](int layer) {
    const auto part = layer == 0 ? embedding<double>(model).table() : head<double>(model).table();
    return part.of(it.stage.parameters(layer));
  };
  std::ranges::copy(table_of(0), table_of(model.layers + 1).begin());
  it.differentiate();
  const auto own = it.stage.tied_gradient(layer_kind::embedding);
  const auto other = it.stage.tied_gradient(layer_kind::head);
  it.stage.join_tied(own, other);
  CHECK(model_test::same_bits<double>(own, other));

  double error = 0;
  for (std::size_t at = 0; at < own.size(); ++at) {
    double& first = table_of(0)[at];
    double& second = table_of(model.layers + 1)[at];
    const double before = first;
    first = second = before + step;
    const double above = it.value();
    first = second = before - step;
    const double below = it.value();
    first = second = before;
    error = std::max(error, std::abs((above - below) / (2 * step) - own[at]));
  }
  CHECK(error < tolerance);
}

TEST_CASE("the loss scale is in the loss and in every gradient, once") {
  const config model = model_test::small(false);
  probe it(model, 0, model.layer_count());
  const auto run = [&](double scale) {
    it.stage.zero_gradients();
    const double loss = it.stage.forward(it.tokens, it.targets, {}, {}, it.stash.span(), scale);
    it.stage.backward({}, {}, it.stash.span());
    return loss;
  };
  const double whole = run(1.0);
  std::vector<double> norms(config::size(model.layer_count())), quarter_norms(norms);
  it.stage.squared_norms(norms);
  CHECK(run(0.25) == whole * 0.25);  // a power of two: exact
  it.stage.squared_norms(quarter_norms);
  for (std::size_t layer = 0; layer < norms.size(); ++layer) {
    CHECK(quarter_norms[layer] == norms[layer] / 16);
  }
}

TEST_CASE("backward for weights adds to what is there") {
  const config model = model_test::small(false);
  probe it(model, 0, model.layer_count());
  it.differentiate();
  std::vector<std::vector<double>> once;
  for (int layer = 0; layer < model.layer_count(); ++layer) {
    const auto gradients = it.stage.gradients(layer);
    once.emplace_back(gradients.begin(), gradients.end());
  }
  it.stage.backward_weight(it.stash.span());
  for (int layer = 0; layer < model.layer_count(); ++layer) {
    const auto twice = it.stage.gradients(layer);
    for (std::size_t at = 0; at < twice.size(); ++at) {
      CHECK(twice[at] == doctest::Approx(2 * once[config::size(layer)][at]).epsilon(1e-12));
    }
  }
}
