// A head in pieces on the ranks of a pipeline: equal to the bit to the unpipelined model whose head
// is in as many, whatever goes with it; and what it says of a text to the whole head's.
#include <algorithm>
#include <cmath>

#include "pipeline_support.hpp"
#include "support/schedules.hpp"

using namespace train;
using namespace pipeline_test;

namespace {

//! `blocks` and so many pieces of a vocabulary of 64; all bytes of the text are below 61.
config with_pieces(int blocks, int pieces, bool tied) {
  config model = tiny(blocks + 2, tied);
  model.vocabulary = 64;
  model.head_pieces = pieces;
  return model;
}

void check_cut_equal(const config& model, const pipeline_settings& settings, int steps = 2) {
  CAPTURE(name(settings, model));
  CAPTURE(model.head_pieces);
  CHECK(compare(model, settings, steps) == "");
}

}  // namespace

TEST_CASE("pieces of a head: every schedule, to the bit") {
  int number = 0;
  for (const stretto::schedule::any& schedule : support::schedules()) {
    if (schedule.forward_only) continue;
    const int before = number;
    for (const int ranks : {2, 4})
      for (int chunks = 1; chunks <= 3; ++chunks) {
        const stretto::shape sizes{.ranks = ranks, .microbatches = 5, .chunks = chunks};
        if (!schedule.supports(sizes)) continue;
        ++number;
        const int pieces = number % 2 == 0 ? 4 : 8;
        const int blocks = std::max(1, ranks * chunks - pieces + number % 3);
        pipeline_settings settings{.schedule = std::string(schedule.name),
                                   .ranks = ranks,
                                   .microbatches = 5,
                                   .chunks = chunks};
        if (number % 4 == 1) settings.recompute = {2, 1};
        if (number % 4 == 2) settings.offload = {{1, 1}};
        settings.transport_capacity = number % 3;
        settings.poison = settings.checked = number % 2 == 1;
        check_cut_equal(with_pieces(blocks, pieces, number % 3 != 0), settings);
      }
    CAPTURE(std::string(schedule.name));
    CHECK(number > before);
  }
  CHECK(number > 50);
}

TEST_CASE("pieces of a head: with slices, replicas, ops, bf16 and layers of all sorts") {
  const auto check = [](pipeline_settings settings, int blocks = 3, int pieces = 4) {
    for (const bool tied : {false, true})
      check_cut_equal(with_pieces(blocks, pieces, tied), settings);
  };
  check({.schedule = "zbv", .ranks = 2, .microbatches = 4});
  check({.schedule = "seq_1f1b", .ranks = 4, .microbatches = 3, .slices = 4});
  check({.schedule = "interleaved_zb", .ranks = 2, .microbatches = 3, .slices = 2, .chunks = 2});
  check({.schedule = "zbv", .ranks = 2, .microbatches = 3, .data_parallel = 2});
  check({.schedule = "bitpipe", .ranks = 4, .microbatches = 4, .chunks = 2, .data_parallel = 2}, 4,
        4);
  check({.schedule = "zb_h1", .ranks = 4, .microbatches = 4, .ops = "look_ahead"});
  check({.schedule = "interleaved", .ranks = 2, .microbatches = 4, .ops = "input_gradient_first"});
  check({.schedule = "zbv", .ranks = 2, .microbatches = 4, .products = precision::bf16});
  check({.schedule = "1f1b", .ranks = 4, .microbatches = 4, .chunks = 1, .layers = "1,1,1,5"});
  check({.schedule = "1f1b", .ranks = 4, .microbatches = 4, .chunks = 1, .layers = "4,2,1,1"});
  check({.schedule = "1f1b", .ranks = 1, .microbatches = 2});
  check({.schedule = "1f1b", .ranks = 2, .microbatches = 4, .layers = "Ett|ttttL"});
  check({.schedule = "v_1f1b", .ranks = 4, .microbatches = 4, .layers = "balanced:12"}, 3, 8);
}

TEST_CASE("pieces of a head: shards of tensor parallelism, to rounding") {
  const config model = with_pieces(3, 4, true);
  pipeline whole(model, text(), {.schedule = "zbv", .ranks = 2, .microbatches = 4}, learning());
  pipeline shards(model, text(),
                  {.schedule = "zbv", .ranks = 2, .microbatches = 4, .tensor_parallel = 2},
                  learning());
  for (int step = 0; step < 3; ++step) {
    const step_result expected = whole.step(), found = shards.step();
    CHECK(found.loss == doctest::Approx(expected.loss).epsilon(1e-5));
    CHECK(found.gradient_norm == doctest::Approx(expected.gradient_norm).epsilon(1e-4));
  }
}

TEST_CASE("pieces of a head: what may follow a text is what a whole head says") {
  const std::vector<std::uint8_t> begun{1, 8, 15, 22};
  const auto logits_of = [&](const config& model, const pipeline_settings& settings) {
    pipeline made(model, text(), settings, learning());
    std::vector<float> seen;
    CHECK(made.next(begun, [&](std::span<const float> logits) {
      seen.assign(logits.begin(), logits.end());
      return std::uint8_t{17};
    }) == 17);
    return seen;
  };
  const std::vector<float> expected =
      logits_of(with_pieces(6, 1, false), {.schedule = "1f1b", .ranks = 2, .microbatches = 2});
  REQUIRE(expected.size() == 64);
  for (const pipeline_settings& settings :
       {pipeline_settings{.schedule = "zbv", .ranks = 2, .microbatches = 4},
        pipeline_settings{.schedule = "1f1b", .ranks = 4, .microbatches = 4},
        pipeline_settings{.schedule = "chimera", .ranks = 4, .microbatches = 4},
        pipeline_settings{.schedule = "seq_1f1b", .ranks = 2, .microbatches = 2, .slices = 2},
        pipeline_settings{
            .schedule = "1f1b", .ranks = 2, .microbatches = 2, .tensor_parallel = 2}}) {
    CAPTURE(settings.schedule);
    const std::vector<float> found = logits_of(with_pieces(6, 4, false), settings);
    REQUIRE(found.size() == expected.size());
    for (std::size_t byte = 0; byte < found.size(); ++byte)
      CHECK(found[byte] == doctest::Approx(expected[byte]).epsilon(1e-4));
  }
}
