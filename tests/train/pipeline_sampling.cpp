// Text from a model whose layers lie in a pipeline: what follows does not depend on how they do.
#include <cmath>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/sample.hpp"
#include "pipeline_support.hpp"

using namespace train;
using namespace pipeline_test;

namespace {

std::span<const std::uint8_t> bytes(const std::string& of) {
  return {reinterpret_cast<const std::uint8_t*>(of.data()), of.size()};
}

std::vector<float> logits_after(pipeline& made, std::span<const std::uint8_t> text) {
  std::vector<float> seen;
  const std::uint8_t byte = made.next(text, [&](std::span<const float> logits) {
    seen.assign(logits.begin(), logits.end());
    return std::uint8_t{17};
  });
  CHECK(byte == 17);
  return seen;
}

std::string sampled(pipeline& made, const sampling& how, const std::string& prompt) {
  return sample([&](auto before, const auto& choose) { return made.next(before, choose); }, prompt,
                how);
}

}  // namespace

TEST_CASE("a learnt cycle is continued by greedy sampling, past the context") {
  std::string cycle;
  for (int i = 0; i < 60; ++i) cycle += "stretto; ";
  const config model{.layers = 2, .width = 16, .heads = 2, .context = 16, .microbatch = 2,
                     .expansion = 2, .tied = false};
  const corpus text({cycle.begin(), cycle.end()}, model.context);
  pipeline made(model, text, {.schedule = "1f1b", .ranks = 2, .microbatches = 2},
                {.seed = 1, .rate = {.peak = 1e-2, .floor = 1e-3, .warmup = 3, .steps = 120}});
  for (int step = 0; step < 120; ++step) made.step();
  CHECK(sampled(made, {.length = 50}, "stre") == cycle.substr(4, 50));
}

TEST_CASE("what may follow is what evaluation sees, and changes nothing") {
  pipeline_settings settings{.ranks = 2, .microbatches = 2, .chunks = 2};
  settings.evaluation_microbatches = 1;
  pipeline made(tiny(6, true), text(), settings, learning());
  for (int step = 0; step < 3; ++step) made.step();
  const double expected = made.evaluate();
  std::vector<std::uint8_t> tokens(8), targets(8);
  text().held_back_batch(0, tokens, targets);
  double loss = 0;
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    const std::vector<float> logits = logits_after(made, std::span(tokens).first(row + 1));
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
    loss += std::log(sum) - static_cast<double>(logits[targets[row]]);
  }
  CHECK(loss / 8 == doctest::Approx(expected).epsilon(1e-5));
  CHECK(made.evaluate() == expected);
}

TEST_CASE("it is the same for every schedule, to the bit where sums have one order") {
  const config model = tiny(6, true);
  const std::string prompt = "\x01\x08\x0f\x16\x1d";
  const sampling how{.length = 20, .temperature = 0.5, .seed = 4, .stop_at_newline = false};
  std::string line;
  std::vector<float> logits;
  for (pipeline_settings settings :
       {pipeline_settings{.schedule = "1f1b", .ranks = 1, .microbatches = 4},
        pipeline_settings{.schedule = "interleaved", .ranks = 3, .microbatches = 4, .chunks = 2},
        pipeline_settings{.schedule = "zbv", .ranks = 3, .microbatches = 4},
        pipeline_settings{.schedule = "dualpipe", .ranks = 2, .microbatches = 4},
        pipeline_settings{.schedule = "seq_1f1b", .ranks = 2, .microbatches = 4, .slices = 4},
        pipeline_settings{.schedule = "seq_1f1b",
                          .ranks = 2,
                          .microbatches = 4,
                          .slices = 3,
                          .slice_lengths = "2,5,1"},
        pipeline_settings{.schedule = "1f1b", .ranks = 2, .microbatches = 4, .tensor_parallel = 2},
        pipeline_settings{.schedule = "1f1b", .ranks = 2, .microbatches = 2, .data_parallel = 2}}) {
    CAPTURE(name(settings, model));
    settings.poison = settings.checked = true;
    pipeline made(model, text(), settings, learning());
    for (int step = 0; step < 3; ++step) made.step();
    const std::string mine = sampled(made, how, prompt);
    CHECK(mine.size() == 20);
    if (line.empty()) line = mine;
    CHECK(mine == line);
    const std::vector<float> after = logits_after(made, bytes(prompt));
    if (logits.empty()) logits = after;
    const bool one_order = settings.slices == 1 && settings.tensor_parallel == 1 &&
                           settings.data_parallel == 1 && settings.schedule != "dualpipe";
    if (one_order) CHECK(after == logits);
    for (std::size_t byte = 0; byte < after.size(); ++byte)
      CHECK(after[byte] == doctest::Approx(logits[byte]).epsilon(1e-3));
  }
}

TEST_CASE("what cannot go on is refused, and a choice that fails says why") {
  pipeline made(tiny(4, true), text(), {.schedule = "1f1b", .ranks = 2, .microbatches = 2},
                learning());
  const auto choose = [](std::span<const float>) -> std::uint8_t {
    throw std::invalid_argument("no taste");
  };
  CHECK_THROWS_WITH_AS(made.next({}, choose), "the text that is to go on is empty",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(made.next(bytes("="), choose),
                       "the text that is to go on has the byte 61, the vocabulary ends at 60",
                       std::invalid_argument);
  CHECK_THROWS_WITH_AS(made.next(bytes("<"), choose), "no byte follows: no taste",
                       std::runtime_error);
  CHECK(logits_after(made, bytes("<")).size() == 61);
}
