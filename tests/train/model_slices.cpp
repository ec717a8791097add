// A sequence in slices against the same in one piece: losses, gradients of the parameters and of
// the input agree to rounding; the products add up; what is asked for wrongly is refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

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

config cut_at(config model, std::vector<int> ends) {
  model = cut(model, static_cast<int>(ends.size()));
  model.slice_ends = std::move(ends);
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
      whole.slice_ends.clear();
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
  std::vector<config> cuts;
  for (const int slices : {1, 2, 3, 4, 8, 24}) cuts.push_back(cut(model, slices));
  for (const std::vector<int>& ends : std::vector<std::vector<int>>{
           {24}, {5, 24}, {20, 24}, {1, 2, 24}, {3, 23, 24}, {10, 17, 22, 24}, {6, 12, 18, 24}})
    cuts.push_back(cut_at(model, ends));
  for (const config& each : cuts) {
    CAPTURE(model_test::name(model));
    CAPTURE(each.slices);
    CAPTURE(each.slice_ends);
    basic_reference<Scalar> sliced(each, 5);
    const step_result found = trained(sliced, each);
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

TEST_CASE("slices whose ends divide the sequence are the equal ones, to the bit") {
  basic_reference<float> equal(cut(model_test::small(true), 4), 5);
  basic_reference<float> told(cut_at(model_test::small(true), {6, 12, 18, 24}), 5);
  CHECK(trained(equal, cut(model_test::small(true), 4)).loss ==
        trained(told, cut(model_test::small(true), 4)).loss);
  CHECK(std::ranges::equal(equal.stage().gradients(), told.stage().gradients()));
}

namespace {

//! The products of every slice's forward, in order, and of all jobs.
std::pair<std::vector<std::uint64_t>, product_counts> products_of(const config& model) {
  basic_stage<double> stage(model, 0, model.layer_count(), 1);
  std::vector<aligned_array<double>> memory;
  std::vector<std::span<double>> stashes;
  const std::size_t slices = config::size(model.slices);
  for (std::size_t slice = 0; slice < slices; ++slice) memory.emplace_back(stage.stash_scalars());
  for (auto& each : memory) {
    model_test::poison(each.span());
    stashes.push_back(each.span());
  }
  const auto before = [&](std::size_t slice) { return std::span(stashes).first(slice); };
  std::vector<std::uint64_t> forward;
  for (std::size_t slice = 0; slice < slices; ++slice) {
    const std::uint64_t done = stage.products().forward;
    const auto of_slice = [&](std::uint64_t key) {
      std::vector<std::uint8_t> made = model_test::tokens(model, key);
      made.resize(model.rows(slice));
      return made;
    };
    stage.forward(of_slice(slice), of_slice(9), {}, {}, stashes[slice], 1, before(slice));
    forward.push_back(stage.products().forward - done);
  }
  // Poison shows where a slice would read what nothing has written, behind its own end, too.
  for (std::size_t slice = slices; slice-- > 0;) {
    stage.backward_input({}, {}, stashes[slice], before(slice));
    stage.backward_weight(stashes[slice], slice);
  }
  for (int layer = 0; layer < model.layer_count(); ++layer)
    for (const double gradient : stage.gradients(layer)) CHECK(std::isfinite(gradient));
  return {forward, stage.products()};
}

}  // namespace

TEST_CASE("a slice's products are what is expected; of equal slices the first sees least") {
  const auto [forward, all] = products_of(cut(model_test::small(false), 4));
  CHECK(std::ranges::is_sorted(forward, std::less_equal<>()));
  for (const std::vector<int>& ends : std::vector<std::vector<int>>{
           {6, 12, 18, 24}, {10, 17, 22, 24}, {2, 3, 20, 24}, {1, 24}, {23, 24}, {24}}) {
    CAPTURE(ends);
    const config model = cut_at(model_test::small(false), ends);
    int longest = 0, begin = 0;
    for (const int end : ends) longest = std::max(longest, end - std::exchange(begin, end));
    CHECK(model.length() == config::size(longest));
    const auto [found, sum] = products_of(model);
    product_counts expected;
    for (int layer = 0; layer < model.layer_count(); ++layer)
      expected += expected_products(model, layer);
    CHECK(sum == expected);
    // By products with weights, and by all tokens that those of the slice see.
    const std::uint64_t width = config::size(model.width);
    for (std::size_t slice = 0; slice < ends.size(); ++slice) {
      const std::uint64_t rows = model.rows(slice), layers = config::size(model.layers);
      CHECK(found[slice] ==
            rows * (layers * (width * width * (4 + 2 * config::size(model.expansion)) +
                              2 * config::size(ends[slice]) * width) +
                    width * config::size(model.vocabulary)));
      std::uint64_t forwards = 0;
      for (int layer = 0; layer < model.layer_count(); ++layer)
        forwards += expected_products(model, layer, slice).forward;
      CHECK(found[slice] == forwards);
    }
  }
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

  config unequal = model;
  unequal.slice_ends = {3, 4, 6};
  batch other(unequal);
  std::ranges::copy(made.tokens(), other.tokens().begin());
  std::ranges::copy(made.targets(), other.targets().begin());
  CHECK(is(other.tokens(0), {0, 1, 2, 6, 7, 8}));
  CHECK(is(other.tokens(1), {3, 9}));
  CHECK(is(other.targets(2), {104, 105, 110, 111}));
}

TEST_CASE("slices that do not fit are refused") {
  config model = cut(model_test::small(true), 5);
  CHECK_THROWS_WITH_AS(model.check(), "model config: context 24 is not a multiple of slices 5",
                       std::invalid_argument);
  for (const std::vector<int>& ends : std::vector<std::vector<int>>{
           {12, 24, 30}, {24, 12}, {0, 24}, {12, 12, 24}, {12, 23}, {12, 25}, {-1, 24}}) {
    CAPTURE(ends);
    CHECK_THROWS_WITH_AS(cut_at(model, ends).check(),
                         doctest::Contains("slice_ends must rise to context, 24, one for each of "),
                         std::invalid_argument);
  }
  config fewer = cut_at(model, {12, 24});
  fewer.slices = 3;
  CHECK_THROWS_WITH_AS(fewer.check(), doctest::Contains("one for each of 3 slices"),
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
