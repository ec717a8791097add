#include "stretto/model/transformer/qkv.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/model/program_sound.hpp"
#include "stretto/model/transformer/chain.hpp"
#include "unit/transformer_chains.hpp"

namespace {

using stretto::architecture;
using stretto::attention_kernel;
using stretto::latent_attention;
using stretto::program_chain;
using stretto::transformer;
using stretto::transformer_part;
using transformer_chains::chain_of;
using transformer_chains::change_of_layer;
using transformer_chains::check_rule;
using transformer_chains::deepseek_v3;
using transformer_chains::one_flop;
using transformer_chains::read_by_weights;

TEST_CASE("the weights of published models with latent attention") {
  // Without the biases that balance its experts, of which each layer has 256.
  CHECK(deepseek_v3.stage_weights({61, true, 1, true}) == 671'026'404'352);
  CHECK(deepseek_v3.dense_width() == 18432);  // by default, too
  // DeepSeek-V2-Lite, whose queries are made of all features.
  constexpr transformer lite{.hidden = 2048,
                             .heads = 16,
                             .vocabulary = 102400,
                             .layers = architecture::llama,
                             .head_width = 128,
                             .latent = {.keys = 512, .rotary = 64},
                             .feed_forward = 1408,
                             .experts = {.count = 64, .per_token = 6, .shared = 2},
                             .dense_layers = 1,
                             .dense_feed_forward = 10944};
  CHECK(lite.stage_weights({27, true, 1, true}) == 15'706'484'224);
  // What a token meets: 37 billion of DeepSeek-V3's, its head among them.
  transformer met = deepseek_v3;
  met.attention = attention_kernel::plain;
  const std::int64_t scores = 2 * met.sequence * (128 * 192 + 128 * 128) / 2;
  const std::int64_t products =
      3 * met.layer_products({.dense = true}) + 58 * met.layer_products() - 61 * scores;
  const std::int64_t all = products + met.vocabulary * met.hidden;
  CHECK(all > 36'500'000'000);
  CHECK(all < 37'500'000'000);
}

TEST_CASE("sizes of latent attention and of dense layers that do not go together") {
  using enum stretto::transformer_rule;
  constexpr auto llama = architecture::llama;
  check_rule({.layers = llama, .latent = {.keys = 64}}, none);
  for (const latent_attention alone :
       {latent_attention{.queries = 64}, latent_attention{.rotary = 8},
        latent_attention{.values = 8}})
    check_rule({.layers = llama, .latent = alone}, latent_keys);
  for (const auto member : {&latent_attention::keys, &latent_attention::queries,
                            &latent_attention::rotary, &latent_attention::values}) {
    transformer model{.layers = llama, .latent = {.keys = 64}};
    model.latent.*member = -1;
    check_rule(model, sizes_positive);
  }
  check_rule({.head_width = -1}, sizes_positive);
  check_rule({.latent = {.keys = 64}}, latent_of_llama);
  check_rule({.layers = llama, .kv_heads = 8, .latent = {.keys = 64}}, latent_of_heads);
  check_rule({.tensor_parallel = 2, .layers = llama, .latent = {.keys = 64}}, none);
  check_rule({.dense_layers = 1}, dense_beside_experts);
  check_rule({.dense_feed_forward = 64}, dense_width_alone);
  check_rule({.experts = {.count = 4}, .dense_feed_forward = 64}, dense_width_alone);
  check_rule({.node_devices = 0, .experts = {.count = 4}}, sizes_positive);
  check_rule({.experts = {.count = 4}, .dense_layers = 1, .dense_feed_forward = 64}, none);
  check_rule({.experts = {.count = 4}, .dense_layers = -1}, sizes_positive);
  check_rule({.experts = {.count = 4}, .dense_feed_forward = -1}, sizes_positive);
  check_rule({.heads = 16, .layers = llama, .kv_heads = 16, .latent = {.keys = 64}}, none);
  const transformer_part parts[] = {{3, true}, {1, false, 1, true, 2}};
  CHECK_THROWS_WITH_AS(
      stretto::transformer_chain({.experts = {.count = 4}, .dense_layers = 1},
                                 {.ranks = 2, .chunks = 1}, 0, parts, false),
      "stretto::transformer_chain: a stage's first layer is not the one behind those before",
      std::invalid_argument);
}

//! Every make of latent attention.
template <class Check>
void each_latent(const Check& check) {
  for (const attention_kernel attention : {attention_kernel::plain, attention_kernel::fused})
    for (const std::int64_t queries : {0, 96})
      for (const std::int64_t rotary : {0, 16})
        for (const std::int64_t values : {0, 40})
          for (const std::int64_t head_width : {0, 48})
            for (const int slices : {1, 4}) {
              const transformer model{.hidden = 512,
                                      .heads = 8,
                                      .sequence = 256,
                                      .microbatch = 3,
                                      .bytes = stretto::mixed_precision,
                                      .layers = architecture::llama,
                                      .attention = attention,
                                      .head_width = head_width,
                                      .latent = {128, queries, rotary, values},
                                      .feed_forward = 384,
                                      .slices = slices};
              CAPTURE(static_cast<int>(attention));
              CAPTURE(queries);
              CAPTURE(rotary);
              CAPTURE(values);
              CAPTURE(head_width);
              CAPTURE(slices);
              check(model);
            }
}

TEST_CASE("latent attention keeps what keys, values and queries are made of, and all of them") {
  each_latent([](const transformer& model) {
    const std::int64_t rows = 3 * 256 / model.slices;
    const std::int64_t h = 512, c = 128, d = model.latent.queries, r = model.latent.rotary;
    const std::int64_t head = model.head_width > 0 ? 48 : 64;
    const std::int64_t q = 8 * (head + r);
    const std::int64_t v = 8 * (model.latent.values > 0 ? 40 : head);
    // Numbers of a row: inputs and norms' results; what is made of these, and its norms; queries
    // and keys; values and what is made of them; the feed-forward.
    std::int64_t saved = 4 * h + (c + r) + c + 2 * d + 2 * q + 2 * v + 3 * 384;
    if (model.slices > 1) saved += q + v;  // gradients of keys and values, from later slices
    const std::int64_t sums =
        model.attention == attention_kernel::fused ? 8 * 4 : 8 * 256 * 2;  // or the softmax
    CHECK(change_of_layer(model, 0, false) == rows * (2 * saved + sums));
    CHECK(change_of_layer(model, 1, false) == -rows * (2 * saved + sums));
    // Between the halves: what each product has read, and the gradient of what it has made.
    const std::int64_t kept = h + c + (c + r) + 2 * d + q + q + v + v + h + (h + 384 + h + 768);
    CHECK(change_of_layer(model, 1, true) == rows * (2 * kept - 2 * saved - sums));
    CHECK(change_of_layer(model, 2, true) == -rows * 2 * kept);
  });
}

TEST_CASE("latent attention takes what its products say, thrice, and five of its scores back") {
  each_latent([](const transformer& model) {
    const std::int64_t rows = 3 * 256 / model.slices;
    const bool fused = model.attention == attention_kernel::fused;
    const std::int64_t q = model.query_width(), v = model.context_width();
    const std::int64_t scores = 256 * (fused ? 1 : 2);  // keys, twice; half of them are skipped
    const program_chain chain = chain_of(model, 1, false, one_flop);
    std::int64_t all[2] = {};
    for (std::size_t job = 0; job < 2; ++job)
      for (const stretto::op& one : chain.ops_of(chain.programs[job]))
        all[job] += one.time <= 1 ? 0 : one.time;  // what moves few bytes
    const std::int64_t matrices = model.layer_products() - scores * (q + v) / 2;
    CHECK(all[0] == rows * (2 * matrices + scores * (q + v)));
    // A fused kernel makes its scores again.
    CHECK(all[1] == rows * (4 * matrices + scores * ((fused ? 3 : 2) * q + 2 * v)));
    // Of both halves, the weights' and the inputs', as many.
    const program_chain halves = chain_of(model, 1, true, one_flop);
    std::int64_t weights = 0;
    for (const stretto::op& one : halves.ops_of(halves.programs[2])) weights += one.time;
    CHECK(weights == 2 * rows * matrices);
  });
}

TEST_CASE("programs of latent attention and of dense layers beside experts are sound") {
  const auto check = [](const transformer& model) {
    std::vector<std::string> whole = read_by_weights(chain_of(model, 2, false));
    std::vector<std::string> split = read_by_weights(chain_of(model, 2, true));
    std::sort(whole.begin(), whole.end());
    std::sort(split.begin(), split.end());
    REQUIRE(whole.size() > 0);
    CHECK(whole == split);
    for (const bool halves : {false, true})
      CHECK(stretto::sound_program(chain_of(model, 2, halves)).ok());
  };
  each_latent(check);
  transformer mixed = deepseek_v3;
  mixed.experts.parallel = 64;
  check(mixed);
}

TEST_CASE("gradients of latent attention's weights are of what their products read and made") {
  transformer model = deepseek_v3;
  model.experts = {}, model.dense_layers = 0;
  const std::vector<std::string> read = read_by_weights(chain_of(model, 1, true));
  for (const char* one :
       {"key and value weights: low keys norm 1", "key and value weights: attention back 1",
        "low key weights: norm 1", "low key weights: low keys norm back 1",
        "query weights: low queries norm 1", "query weights: rotary back 1",
        "low query weights: norm 1", "low query weights: low queries norm back 1"}) {
    CAPTURE(one);
    const auto times = std::ranges::count(read, one);
    CHECK(times == (std::string_view(one) == "key and value weights: attention back 1" ? 2 : 1));
  }
  model.latent.queries = 0;
  const std::vector<std::string> direct = read_by_weights(chain_of(model, 1, true));
  CHECK(std::ranges::count(direct, "query weights: norm 1") == 1);
  CHECK(std::ranges::count(direct, "query weights: rotary back 1") == 1);
}

//! What the middle stage of three with such layers keeps and takes, beside experts.
struct middle_stage {
  std::int64_t keeps = 0, computes = 0, weights = 0;

  middle_stage(const transformer& model, std::int64_t layers, std::int64_t first) {
    const transformer_part parts[] = {
        {first, true}, {layers, false, 0, false, first}, {1, false, 1, true, first + layers}};
    const program_chain chain = stretto::transformer_chain(model, {.ranks = 3, .chunks = 1}, 1,
                                                           parts, false, one_flop);
    keeps = transformer_chains::measured_chain(chain)[0].change;
    for (const stretto::op& one : chain.ops) computes += one.time <= 1 ? 0 : one.time;
    weights = model.stage_weights(parts[1]);
  }
  bool operator==(const middle_stage&) const = default;
};

TEST_CASE("layers before those with experts have a feed-forward of their own width") {
  const transformer mixed{.hidden = 512,
                          .heads = 8,
                          .sequence = 256,
                          .bytes = stretto::mixed_precision,
                          .layers = architecture::llama,
                          .attention = attention_kernel::fused,
                          .feed_forward = 128,
                          .experts = {.count = 16, .per_token = 3, .shared = 1, .parallel = 4},
                          .dense_layers = 2,
                          .dense_feed_forward = 768};
  transformer plain = mixed;
  plain.experts = {}, plain.dense_layers = plain.dense_feed_forward = 0;
  plain.feed_forward = 768;
  CHECK(middle_stage(mixed, 2, 0) == middle_stage(plain, 2, 0));
  const middle_stage both(mixed, 3, 1), without(mixed, 2, 2), dense(plain, 1, 0), none(plain, 0, 0);
  CHECK(both.keeps == without.keeps + dense.keeps - none.keeps);
  CHECK(both.computes == without.computes + dense.computes);
  CHECK(both.weights == without.weights + dense.weights);
  // Their weights are no experts', which have one holder among these four.
  transformer sharded = mixed;
  sharded.optimizer_shards = 4;
  const transformer_part before{1, false, 0, false, 1}, behind{1, false, 0, false, 2};
  const std::int64_t rest = sharded.stage_weights(before);
  CHECK(sharded.state_bytes(before) == 4 * rest + 12 * ((rest + 3) / 4));
  CHECK(sharded.summed_weights(before, 4) == rest);
  CHECK(sharded.summed_weights(behind, 4) == sharded.stage_weights(behind) - 4 * 3 * 512 * 128);
  // Stages number the model's layers on.
  const std::vector<std::int32_t> counts{1, 3, 2};
  const auto parts = stretto::transformer_parts(counts);
  CHECK(parts[0].first == 0);
  CHECK(parts[1].first == 1);
  CHECK(parts[2].first == 4);
}

}  // namespace
