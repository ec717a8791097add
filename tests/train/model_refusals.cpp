// Bad sizes, buffers, bytes and gradients are refused, each by name.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

#include "model/reference.hpp"
#include "model_support.hpp"

using namespace train;

TEST_CASE("a config that makes no model is refused by name") {
  const auto refused = [](auto change, const char* culprit) {
    config model = model_test::small(true);
    change(model);
    CAPTURE(culprit);
    CHECK_THROWS_WITH_AS(model.check(), doctest::Contains(culprit), std::invalid_argument);
    CHECK_THROWS_AS(stage(model, 0, 1, 1), std::invalid_argument);
  };
  model_test::small(true).check();
  refused([](config& model) { model.layers = 0; }, "layers is 0");
  refused([](config& model) { model.width = -6; }, "width is -6");
  refused([](config& model) { model.heads = 0; }, "heads is 0");
  refused([](config& model) { model.heads = 4; }, "width 6 is not a multiple of heads 4");
  refused([](config& model) { model.context = 0; }, "context is 0");
  refused([](config& model) { model.microbatch = 0; }, "microbatch is 0");
  refused([](config& model) { model.vocabulary = 257; }, "vocabulary is 257");
  refused([](config& model) { model.expansion = 0; }, "expansion is 0");
  refused([](config& model) { model.context = model.microbatch = 1 << 20; }, "1e11");
}

TEST_CASE("buffers of the wrong size or place, and unknown bytes, are refused by name") {
  const config model = model_test::small(true);
  stage middle(model, 1, 3, 1), whole(model, 0, 4, 1);
  aligned_array<float> stash(std::max(middle.stash_scalars(), whole.stash_scalars()));
  aligned_array<float> input(model.activation_scalars()), output(model.activation_scalars() + 16);
  const auto message = output.span().first(model.activation_scalars());
  const auto tokens = model_test::tokens(model, 1);
  const auto refused = [](auto call, const char* culprit) {
    CHECK_THROWS_WITH_AS(call(), doctest::Contains(culprit), std::invalid_argument);
  };
  middle.forward({}, {}, input.span(), message, stash.span(), 1);
  refused([&] { middle.forward({}, {}, {}, message, stash.span(), 1); }, "input has 0");
  refused([&] { middle.forward({}, {}, input.span(), output.span(), stash.span(), 1); }, "output");
  refused(
      [&] {
        middle.forward({}, {}, input.span(), output.span().subspan(1, message.size()), stash.span(),
                       1);
      },
      "output is not aligned");
  refused([&] { middle.forward({}, {}, input.span(), message, {}, 1); }, "stash has 0");
  refused([&] { middle.backward_input({}, input.span(), stash.span()); }, "output_gradient");
  refused([&] { middle.backward(message, {}, stash.span()); }, "input_gradient");
  refused([&] { middle.backward_weight(stash.span().first(16)); }, "stash has 16");
  refused([&] { whole.forward({}, tokens, {}, {}, stash.span(), 1); }, "tokens has 0");
  refused([&] { whole.forward(tokens, {}, {}, {}, stash.span(), 1); }, "targets has 0");
  auto unknown = tokens;
  unknown[3] = 11;
  refused([&] { whole.forward(tokens, unknown, {}, {}, stash.span(), 1); }, "targets has the byte");
  refused([&] { whole.squared_norms({}); }, "0 slots");
  refused([&] { middle.join_tied({}, {}); }, "embedding's gradient has 0");
  refused([&] { middle.parameters(0); }, "layer 0 is not in [1, 3)");
  refused([&] { stage(model, 2, 2, 1); }, "layers [2, 2)");
  refused([&] { stage(model, 0, 5, 1); }, "layers [0, 5)");
  refused([&] { expected_products(model, 4); }, "layer 4 does not exist");
  refused([&] { reference(model, 1).evaluate(0, [](int, auto, auto) {}); }, "microbatches is 0");
}

TEST_CASE("a step that diverges is refused before it touches the parameters") {
  const config model = model_test::small(true);
  reference whole(model, 1);
  whole.stage().parameters(1)[0] = std::numeric_limits<float>::infinity();
  const std::vector<float> before(whole.stage().parameters(2).begin(),
                                  whole.stage().parameters(2).end());
  CHECK_THROWS_WITH_AS(whole.step(1, 1, 1e-2, 1, {}, [](int, auto, auto) {}),
                       doctest::Contains("diverged"), std::runtime_error);
  CHECK(model_test::same_bits<float>(before, whole.stage().parameters(2)));
}
