// A sequence in slices against the same in one piece: losses, gradients of the parameters and of
// the input agree to rounding; the products add up; what is asked for wrongly is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "model/batch.hpp"
#include "model/layer.hpp"
#include "model/reference.hpp"
#include "model_support.hpp"

using namespace train;

namespace {

config cut(config model, int slices) {
  model.context = 24;
  model.slices = slices;
  return model;
}

//! Two steps of a reference; the gradients of the second are left.
template <class Scalar>
step_result trained(basic_reference<Scalar>& made, const config& model) {
  step_result last;
  for (long step = 1; step <= 2; ++step)
    last = made.step(step, 3, 1e-2, 0.5, {}, [&](int microbatch, auto tokens, auto targets) {
      config whole = model;
      whole.slices = 1;
      const auto key = static_cast<std::uint64_t>(10 * step + microbatch);
      std::ranges::copy(model_test::tokens(whole, key), tokens.begin());
      std::ranges::copy(model_test::tokens(whole, key + 1000), targets.begin());
    });
  return last;
}

//! Sums of the slices are grouped otherwise than those of a whole sequence: rounding errors of a
//! few units in the last place of the largest term.
template <class Scalar>
constexpr double slices_bound = sizeof(Scalar) == 8 ? 1e-12 : 2e-5;

template <class Scalar>
void agree(const config& model) {
  basic_reference<Scalar> whole(cut(model, 1), 5);
  const step_result expected = trained(whole, cut(model, 1));
  for (const int slices : {1, 2, 3, 4, 8, 24}) {
    CAPTURE(model_test::name(model));
    CAPTURE(slices);
    basic_reference<Scalar> sliced(cut(model, slices), 5);
    const step_result found = trained(sliced, cut(model, slices));
    CHECK(found.loss == doctest::Approx(expected.loss).epsilon(slices_bound<Scalar>));
    CHECK(found.gradient_norm ==
          doctest::Approx(expected.gradient_norm).epsilon(slices_bound<Scalar>));
    for (int layer = 0; layer < model.layer_count(); ++layer)
      CHECK(model_test::distance<Scalar>(sliced.stage().gradients(layer),
                                         whole.stage().gradients(layer)) < slices_bound<Scalar>);
  }
}

}  // namespace

TEST_CASE("two steps in slices: losses, norms and gradients of a whole sequence, to rounding") {
  for (const bool tied : {false, true}) {
    agree<double>(model_test::small(tied));
    agree<float>(model_test::small(tied));
    agree<float>(model_test::medium(tied));
  }
}

TEST_CASE("a slice's products: on the average what is expected; the first sees least") {
  const config model = cut(model_test::small(false), 4);
  basic_stage<double> stage(model, 0, model.layer_count(), 1);
  std::vector<aligned_array<double>> memory;
  std::vector<std::span<double>> stashes;
  for (int slice = 0; slice < 4; ++slice) memory.emplace_back(stage.stash_scalars());
  for (auto& each : memory) {
    model_test::poison(each.span());
    stashes.push_back(each.span());
  }
  const auto before = [&](std::size_t slice) { return std::span(stashes).first(slice); };
  std::vector<std::uint64_t> forward;
  for (std::size_t slice = 0; slice < 4; ++slice) {
    const std::uint64_t done = stage.products().forward;
    stage.forward(model_test::tokens(model, slice), model_test::tokens(model, 9), {}, {},
                  stashes[slice], 1, before(slice));
    forward.push_back(stage.products().forward - done);
  }
  CHECK(std::ranges::is_sorted(forward, std::less_equal<>()));
  // Poison shows where a slice would read what no later one has written.
  for (std::size_t slice = 4; slice-- > 0;) {
    stage.backward_input({}, {}, stashes[slice], before(slice));
    stage.backward_weight(stashes[slice], slice);
  }
  for (const double gradient : stage.gradients(1)) CHECK(std::isfinite(gradient));
  product_counts expected;
  for (int layer = 0; layer < model.layer_count(); ++layer) {
    const product_counts one = expected_products(model, layer);
    expected.forward += 4 * one.forward;
    expected.backward_input += 4 * one.backward_input;
    expected.backward_weight += 4 * one.backward_weight;
  }
  CHECK(stage.products() == expected);
}

TEST_CASE("a batch gives a slice its part of every sequence") {
  const config model{.layers = 1, .context = 6, .microbatch = 2, .slices = 3};
  batch made(model);
  for (std::size_t at = 0; at < 12; ++at) {
    made.tokens()[at] = static_cast<std::uint8_t>(at);
    made.targets()[at] = static_cast<std::uint8_t>(100 + at);
  }
  const auto is = [](std::span<const std::uint8_t> found, std::vector<std::uint8_t> expected) {
    return std::ranges::equal(found, expected);
  };
  CHECK(is(made.tokens(0), {0, 1, 6, 7}));
  CHECK(is(made.tokens(2), {4, 5, 10, 11}));
  CHECK(is(made.targets(1), {102, 103, 108, 109}));
}

TEST_CASE("slices that do not fit are refused") {
  config model = cut(model_test::small(true), 5);
  CHECK_THROWS_WITH_AS(model.check(), "model config: context 24 is not a multiple of slices 5",
                       std::invalid_argument);
  model.slices = 2;
  basic_stage<float> stage(model, 1, 2, 1);
  aligned_array<float> stash(stage.stash_scalars()), other(stage.stash_scalars()),
      input(model.activation_scalars()), output(model.activation_scalars());
  const std::vector<std::span<float>> two{other.span(), other.span()};
  CHECK_THROWS_WITH_AS(stage.forward({}, {}, input.span(), output.span(), stash.span(), 1, two),
                       "slice 2 does not exist: the model has 2", std::invalid_argument);
  const std::vector<std::span<float>> empty(1);
  CHECK_THROWS_WITH_AS(stage.backward_input(input.span(), output.span(), stash.span(), empty),
                       doctest::Contains("the stash of an earlier slice has 0"),
                       std::invalid_argument);
}
