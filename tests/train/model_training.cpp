// The parts of training that are not layers: configuration, optimizer, learning rate, sampling; and
// the whole: a loss that falls and a text that is learnt.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "model/corpus.hpp"
#include "model/reference.hpp"
#include "model/sample.hpp"
#include "model_support.hpp"

using namespace train;

namespace {

// Public domain: Lewis Carroll, "Alice's Adventures in Wonderland" (1865), chapter 1.
constexpr std::string_view prose =
    "Alice was beginning to get very tired of sitting by her sister on the bank, and of having "
    "nothing to do: once or twice she had peeped into the book her sister was reading, but it had "
    "no pictures or conversations in it, \"and what is the use of a book,\" thought Alice "
    "\"without pictures or conversations?\" So she was considering in her own mind (as well as "
    "she could, for the hot day made her feel very sleepy and stupid), whether the pleasure of "
    "making a daisy-chain would be worth the trouble of getting up and picking the daisies, when "
    "suddenly a White Rabbit with pink eyes ran close by her. There was nothing so very "
    "remarkable in that; nor did Alice think it so very much out of the way to hear the Rabbit "
    "say to itself, \"Oh dear! Oh dear! I shall be late!\"\n";

std::vector<std::uint8_t> bytes_of(std::string_view text) {
  return {text.begin(), text.end()};
}

config two_layers(bool tied) {
  return {.layers = 2,
          .width = 32,
          .heads = 2,
          .context = 32,
          .microbatch = 4,
          .vocabulary = 256,
          .expansion = 4,
          .tied = tied};
}

std::vector<double> losses(const config& model, const corpus& text, int steps, reference& whole) {
  std::vector<double> result;
  const learning_rate_schedule rate{.peak = 1e-2, .floor = 1e-3, .warmup = 3, .steps = steps};
  for (int step = 1; step <= steps; ++step) {
    result.push_back(whole
                         .step(step, 2, rate.at(step), 1.0, {},
                               [&](int i, auto tokens, auto targets) {
                                 text.batch(5, step, i, tokens, targets);
                               })
                         .loss);
  }
  CHECK(whole.stage().model() == model);
  return result;
}

}  // namespace

TEST_CASE("the loss falls on a small text, tied and untied") {
  for (const bool tied : {false, true}) {
    CAPTURE(tied);
    const config model = two_layers(tied);
    const corpus text(bytes_of(prose), model.context);
    reference whole(model, 1);
    const auto evaluate = [&] {
      return whole.evaluate(
          1, [&](int i, auto tokens, auto targets) { text.held_back_batch(i, tokens, targets); });
    };
    const double held_back_before = evaluate();
    const std::vector<double> loss = losses(model, text, 30, whole);
    CHECK(loss.front() == doctest::Approx(std::log(256.0)).epsilon(0.02));  // knows nothing
    CHECK(loss.back() < 3.3);  // better than knowing which 40 bytes occur: ln(40) is 3.7
    CHECK(evaluate() < held_back_before - 1);

    reference again(model, 1);
    CHECK(losses(model, text, 30, again) == loss);
  }
}

TEST_CASE("evaluation changes nothing") {
  const config model = two_layers(true);
  const corpus text(bytes_of(prose), model.context);
  reference whole(model, 1);
  const auto fill = [&](int i, auto tokens, auto targets) {
    text.held_back_batch(i, tokens, targets);
  };
  const double first = whole.evaluate(3, fill);
  CHECK(whole.evaluate(3, fill) == first);
  CHECK(model_test::same_bits<float>(whole.stage().parameters(1),
                                     stage(model, 1, 2, 1).parameters(1)));
}

TEST_CASE("choosing a byte: greedy, by belief, and never from nonsense") {
  std::vector<float> logits{0.0f, 2.0f, 1.0f};
  random_stream numbers(1);
  CHECK(choose(logits, 0, numbers) == 1);
  std::vector<double> counts(3);
  for (int i = 0; i < 20000; ++i) counts[choose(logits, 1, numbers)] += 1.0 / 20000;
  const double total = 1 + std::exp(1.0) + std::exp(2.0);
  CHECK(counts[0] == doctest::Approx(1 / total).epsilon(0.05));
  CHECK(counts[1] == doctest::Approx(std::exp(2.0) / total).epsilon(0.05));
  CHECK(choose(logits, 1e-6, numbers) == 1);
  CHECK_THROWS_WITH_AS(choose(logits, -1, numbers), doctest::Contains("temperature"),
                       std::invalid_argument);
  logits[2] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_WITH_AS(choose(logits, 1, numbers), doctest::Contains("byte 2"), std::runtime_error);
  CHECK(printable("a\\\n\t\x01\xff~") == "a\\\\\\n\\t\\x01\\xff~");
}

TEST_CASE("AdamW by hand, over three steps") {
  const adamw rule{.beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-3, .weight_decay = 0.5};
  for (const bool decayed : {false, true}) {
    std::vector<double> value(5, 2.0), mean(5), square(5);
    double expected = 2, m = 0, v = 0;
    for (int step = 1; step <= 3; ++step) {
      const double raw = 0.7 * step - 1;
      const std::vector<double> gradient(5, raw);
      update<double>({rule, step, 0.1}, 0.25, decayed, value, gradient, mean, square);
      const double g = raw * 0.25;
      m = 0.8 * m + 0.2 * g;
      v = 0.9 * v + 0.1 * g * g;
      const double unbiased_m = m / (1 - std::pow(0.8, step));
      const double unbiased_v = v / (1 - std::pow(0.9, step));
      if (decayed) expected -= 0.1 * 0.5 * expected;
      expected -= 0.1 * unbiased_m / (std::sqrt(unbiased_v) + 1e-3);
    }
    for (const double each : value) CHECK(each == doctest::Approx(expected).epsilon(1e-12));
  }
}

TEST_CASE("weight decay reaches matrices and tables, not norms and biases") {
  const config model = model_test::small(false);
  stage one(model, 0, model.layer_count(), 1);
  for (int layer = 0; layer < model.layer_count(); ++layer) {
    for (float& value : one.parameters(layer)) value = 1;
  }
  const double clip_factor = 1;
  const train::adamw_factors<float> by({.weight_decay = 0.5}, 1, 0.1);
  one.clip_and_update(&by, &clip_factor);  // gradients are zero
  for (int layer = 0; layer < model.layer_count(); ++layer) {
    for (const tensor& part : parameter_tensors(model, layer)) {
      const std::size_t width = config::size(model.width);
      const bool vector = part.size <= width * 3;  // in this shape, all norms and biases are
      for (const float value : part.of(one.parameters(layer))) {
        CHECK(value == (vector ? 1.0f : doctest::Approx(0.95f)));
      }
    }
  }
}

TEST_CASE("learning rate: warm-up, cosine, floor") {
  const learning_rate_schedule rate{.peak = 2, .floor = 1, .warmup = 4, .steps = 12};
  CHECK(rate.at(1) == 0.5);
  CHECK(rate.at(4) == 2);
  CHECK(rate.at(8) == doctest::Approx(1.5));
  CHECK(rate.at(12) == 1);
  CHECK(rate.at(100) == 1);
  for (long step = 5; step <= 12; ++step) CHECK(rate.at(step) < rate.at(step - 1));
  CHECK_THROWS_WITH_AS((learning_rate_schedule{.peak = 0, .floor = 0}.check()),
                       doctest::Contains("peak"), std::invalid_argument);
  CHECK_THROWS_WITH_AS((learning_rate_schedule{.warmup = 9, .steps = 8}.check()),
                       doctest::Contains("steps"), std::invalid_argument);
}

TEST_CASE("squared norms: one slot per layer, the tied table once") {
  for (const bool tied : {false, true}) {
    CAPTURE(tied);
    const config model = model_test::small(tied);
    stage one(model, 0, model.layer_count(), 1);
    for (int layer = 0; layer < model.layer_count(); ++layer) {
      for (const tensor& part : parameter_tensors(model, layer)) {
        std::ranges::fill(part.of(one.gradients(layer)), static_cast<float>(layer + 1));
      }
    }
    std::vector<double> slots(4, -1);
    one.squared_norms(slots);
    const auto count = [&](int layer) {
      return static_cast<double>(parameter_count(model, layer));
    };
    const double width = model.width;
    CHECK(slots[0] == count(0));
    CHECK(slots[1] == 4 * count(1));
    CHECK(slots[2] == 9 * count(2));
    CHECK(slots[3] == 16 * (tied ? 2 * width : count(3)));  // tied: gamma and beta alone

    std::vector<double> some(4, -1);
    stage(model, 1, 3, 1).squared_norms(some);
    CHECK(some == std::vector<double>{-1, 0, 0, -1});
  }
}

TEST_CASE("clipping") {
  CHECK(global_norm(std::vector<double>{9, 16}) == 5);
  CHECK(clip_factor(5, 10) == 1);
  CHECK(clip_factor(5, 2.5) == 0.5);
  CHECK_THROWS_WITH_AS(clip_factor(std::numeric_limits<double>::infinity(), 1),
                       doctest::Contains("not finite"), std::runtime_error);
  CHECK_THROWS_AS(clip_factor(1, 0), std::invalid_argument);
}
