// Windows of attention: layers that attend to a few tokens, and those that attend to all.
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "stretto/model/slice_lengths.hpp"
#include "stretto/model/transformer/chain.hpp"
#include "unit/transformer_chains.hpp"

namespace {

using stretto::attention_kernel;
using stretto::layer_kind;
using stretto::program_chain;
using stretto::transformer;
using transformer_chains::chain_of;
using transformer_chains::check_rule;
using transformer_chains::one_flop;

transformer windowed_model(std::int64_t window, std::int64_t pattern, int slices = 1) {
  return {.hidden = 64,
          .heads = 4,
          .sequence = 96,
          .microbatch = 2,
          .layers = stretto::architecture::llama,
          .attention = attention_kernel::fused,
          .window = window,
          .window_pattern = pattern,
          .slices = slices};
}

TEST_CASE("what a token attends to is what its window leaves of those before") {
  for (const std::int64_t window : {1, 5, 24, 31, 32, 33, 64, 95, 96, 200})
    for (const stretto::sequence_part slice :
         {stretto::sequence_part{}, {0, 32}, {32, 64}, {33, 96}, {90, 96}}) {
      transformer model = windowed_model(window, 0);
      model.slice = slice;
      CAPTURE(window);
      CAPTURE(slice.begin);
      const std::int64_t end = slice.end > 0 ? slice.end : 96;
      std::int64_t twice = 0;  // a token in the midst of its own: half of that
      for (std::int64_t token = slice.begin; token < end; ++token)
        twice += token < window ? 2 * token + 1 : 2 * window;
      CHECK(model.attends_twice(true) == twice / (end - slice.begin));
      CHECK(model.attends_twice() == end + slice.begin);
    }
}

TEST_CASE("a pattern has one layer that attends to all, the others have a window") {
  const transformer model = windowed_model(8, 3);
  const bool windowed[] = {true, true, false, true, true, false, true};
  for (int layer = 0; layer < 7; ++layer)
    CHECK(model.kind_of(layer) == layer_kind{.windowed = windowed[layer]});
  CHECK(windowed_model(8, 0).kind_of(2) == layer_kind{.windowed = true});
  CHECK(windowed_model(0, 0).kind_of(0) == layer_kind{});
  const std::int64_t few = model.layer_products({.windowed = true});
  CHECK(model.mean_products() == few + (model.layer_products() - few) / 3);
  CHECK(windowed_model(8, 0).mean_products() == few);
  CHECK(windowed_model(0, 0).mean_products() == model.layer_products());
}

TEST_CASE("layers take by their windows, wherever their stage begins") {
  const transformer model = windowed_model(8, 3);
  const program_chain chain = chain_of(model, 4, false, one_flop);  // layers 4 to 7
  std::vector<std::int64_t> took;
  for (const stretto::op& one : chain.ops_of(chain.programs[0]))
    if (one.name == "attention") took.push_back(one.time);
  const auto of = [&](bool windowed) { return 192 * model.attends_twice(windowed) * 2 * 64; };
  CHECK(took == std::vector{of(true), of(false), of(true), of(true)});
  std::vector<std::int64_t> back;
  for (const stretto::op& one : chain.ops_of(chain.programs[1]))
    if (one.name == "attention back") back.push_back(2 * one.time);
  CHECK(back == std::vector{5 * of(true), 5 * of(true), 5 * of(false), 5 * of(true)});
}

TEST_CASE("keys and values are read as far as a window reaches") {
  constexpr stretto::machine one_byte{"one byte a ns", std::int64_t{1} << 40, 1,
                                      std::int64_t{1} << 40};
  const auto attention = [&](transformer model) {
    const program_chain chain = chain_of(model, 1, false, one_byte);  // the second layer
    for (const stretto::op& one : chain.ops_of(chain.programs[0]))
      if (one.name == "attention") return one.time;
    return std::int64_t{0};
  };
  const std::int64_t row = 2 * 64 * 4;  // of both sequences
  const auto touched = [&](std::int64_t tokens) { return 2 * row * tokens + 2 * 4 * 4 * tokens; };
  transformer model = windowed_model(8, 0);
  model.slice = {32, 64};
  CHECK(attention(model) == touched(32) + 2 * row * (32 + 8));
  model.window = 40;
  CHECK(attention(model) == touched(32) + 2 * row * (32 + 32));
  model.window_pattern = 2;  // of which the second has none
  CHECK(attention(model) == touched(32) + 2 * row * 64);
  // Equal ones in the mean: 24 tokens each, and of those before none, 24, 30 and 30.
  CHECK(attention(windowed_model(30, 0, 4)) == touched(24) + 2 * row * (4 * 24 + 24 + 30 + 30) / 4);
  CHECK(attention(windowed_model(0, 0, 4)) == touched(24) + 2 * row * (4 * 24 + 24 + 48 + 72) / 4);
}

TEST_CASE("where windows are short, slices that take the same are as long") {
  transformer model = windowed_model(4, 0);
  model.sequence = 4096;
  for (const stretto::sequence_part& one : stretto::balanced_slices(model, 4, 64)) {
    CHECK(one.end - one.begin == 1024);
  }
  model.window = 0;
  CHECK(stretto::balanced_slices(model, 4, 64)[0].end > 1024);
}

TEST_CASE("a pattern wants a window, and a window the fused kernel") {
  using enum stretto::transformer_rule;
  check_rule({.window = 8}, window_of_fused);
  check_rule({.window_pattern = 8}, pattern_of_window);
  check_rule({.window = -1}, sizes_positive);
  check_rule({.window_pattern = -1}, sizes_positive);
  check_rule(windowed_model(8, 2), none);
}

}  // namespace
