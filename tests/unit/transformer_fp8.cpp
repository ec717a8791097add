// Products with weights in FP8: what they keep, read, take and send, counted anew.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/model/program_sound.hpp"
#include "unit/transformer_chains.hpp"

namespace {

using stretto::architecture;
using stretto::attention_kernel;
using stretto::made_by_product;
using stretto::op;
using stretto::program_chain;
using stretto::transformer;
using transformer_chains::chain_of;
using transformer_chains::change_of_layer;
using transformer_chains::deepseek_v3;
using transformer_chains::times;

//! A device of which nothing but products takes time worth telling, in FP8 half as much.
constexpr stretto::machine two_flops{
    "two flops a ns", 1, std::int64_t{1} << 40, std::int64_t{1} << 40, 0, 0, 0, 0, {}, 0, 0, 0, 2};
//! And one that only moves bytes, or sends them.
constexpr stretto::machine one_byte{"one byte a ns", std::int64_t{1} << 50, 1, 1};

transformer in_fp8(transformer model) {
  model.bytes = stretto::fp8_precision;
  return model;
}

transformer dense(architecture layers, attention_kernel attention) {
  return {.hidden = 512,
          .heads = 8,
          .sequence = 256,
          .microbatch = 3,
          .bytes = stretto::mixed_precision_wide_gradients,
          .layers = layers,
          .attention = attention};
}

TEST_CASE("a layer keeps what its products read in a byte each") {
  for (const attention_kernel attention : {attention_kernel::plain, attention_kernel::fused}) {
    const bool fused = attention == attention_kernel::fused;
    const transformer gpt = in_fp8(dense(architecture::gpt, attention));
    const std::int64_t rows = gpt.tokens(), h = 512;
    // Inputs, queries, keys, values, what goes into the GELU; both norms, what attention and the
    // GELU have made; masks; and of a fused kernel the context as it was, from which it goes back.
    const std::int64_t scores = fused ? 4 * 8 * rows : 5 * 8 * 256 * rows;
    const std::int64_t saved = 2 * (h + h + 3 * h + 4 * h) + (h + h + h + 4 * h) + 2 * h;
    CHECK(change_of_layer(gpt, 0, false) == rows * (saved + (fused ? 2 * h : 0)) + scores);
    CHECK(saved == 27 * h);
    CHECK(change_of_layer(gpt, 1, false) == -change_of_layer(gpt, 0, false));
    // Between the halves of a backward: what products have read, gradients of what they have made.
    CHECK(change_of_layer(gpt, 2, true) == -rows * ((h + h + h + 4 * h) + (3 * h + h + 4 * h + h)));

    const transformer llama = in_fp8(dense(architecture::llama, attention));
    const std::int64_t f = llama.feed_forward_width();
    const std::int64_t softmax = fused ? 4 * 8 * rows : 2 * 8 * 256 * rows;
    CHECK(change_of_layer(llama, 0, false) ==
          rows * (2 * (h + h + 3 * h + 2 * f) + (h + h + h + f) + (fused ? 2 * h : 0)) + softmax);
  }
}

TEST_CASE("experts keep, and get, their tokens in a byte each, and give back two") {
  const std::int64_t h = 512, f = 128, rows = 256;
  for (const std::int64_t shared : {0, 2}) {
    transformer mixed = dense(architecture::llama, attention_kernel::fused);
    mixed.microbatch = 1;
    mixed.feed_forward = f;
    mixed.experts = {.count = 16, .per_token = 3, .shared = shared, .parallel = 4};
    const transformer narrow = in_fp8(mixed);
    const std::int64_t attention = rows * (2 * (h + 3 * h) + (h + h) + 2 * h) + 4 * 8 * rows;
    // The router reads the norm as it is; copies of tokens, what is made of them, what comes back.
    const std::int64_t experts = 2 * (h + h) + 4 * 16 + 3 * (h + 2 * 2 * f + f + 2 * h);
    const std::int64_t beside = shared * (2 * 2 * f + f) + (shared > 0 ? h : 0);
    CHECK(change_of_layer(narrow, 0, false) == attention + rows * (experts + beside));

    for (const bool split : {false, true}) {
      const program_chain two = chain_of(mixed, 1, split, one_byte);
      const program_chain one = chain_of(narrow, 1, split, one_byte);
      CHECK(times(two, 0)["dispatch"] == rows * 3 * h * 2 * 3 / 4);
      CHECK(times(one, 0)["dispatch"] == rows * 3 * h * 3 / 4);
      CHECK(times(one, 0)["combine"] == times(two, 0)["combine"]);
      CHECK(2 * times(one, 1)["combine back"] == times(two, 1)["combine back"]);
      CHECK(times(one, 1)["dispatch back"] == times(two, 1)["dispatch back"]);
      CHECK(times(one, 0)["router"] == times(two, 0)["router"]);
    }
  }
}

TEST_CASE("products with a layer's matrices alone take the rate of FP8") {
  for (const bool latent : {false, true}) {
    transformer model = deepseek_v3;
    model.sequence = 512;
    model.experts.parallel = 64;
    if (!latent) model.latent = {};
    model.bytes = stretto::mixed_precision_wide_gradients;
    // A half more than they take, as whole nanoseconds are rounded up.
    const auto halves = [](std::int64_t fast, std::int64_t slow) {
      CHECK(slow <= 2 * fast);
      CHECK(2 * fast <= slow + 1);
    };
    for (const bool split : {false, true}) {
      const program_chain two = chain_of(model, 4, split, two_flops);
      const program_chain one = chain_of(in_fp8(model), 4, split, two_flops);
      int halved = 0;
      for (std::size_t job = 0; job < two.programs.size(); ++job) {
        const auto slow = times(two, job), fast = times(one, job);
        for (const auto& [name, time] : slow) {
          CAPTURE(name);
          REQUIRE(fast.contains(name));
          if (time < 1000) continue;  // no products, in bytes that hardly take time
          if (name.starts_with("attention") || name.starts_with("router")) {
            CHECK(fast.at(name) == time);
          } else {
            halves(fast.at(name), time);
            ++halved;
          }
        }
      }
      CHECK(halved >= 18);
    }
  }
  // A device without it takes as long as in half precision.
  stretto::machine older = two_flops;
  older.fp8 = 0;
  const transformer gpt = dense(architecture::gpt, attention_kernel::fused);
  CHECK(times(chain_of(in_fp8(gpt), 1, false, older), 0)["qkv"] ==
        times(chain_of(gpt, 1, false, older), 0)["qkv"]);
}

TEST_CASE("a product reads a byte of a number, and writes two") {
  const transformer gpt = dense(architecture::gpt, attention_kernel::fused);
  const std::int64_t rows = gpt.tokens(), h = 512, f = 4 * h;
  const program_chain two = chain_of(gpt, 1, false, one_byte);
  const program_chain one = chain_of(in_fp8(gpt), 1, false, one_byte);
  for (const char* name : {"widen", "narrow"})
    CHECK(times(two, 0)[name] == 2 * (rows * h + rows * f + h * f));
  CHECK(times(one, 0)["widen"] == rows * h + 2 * rows * f + h * f);
  CHECK(times(one, 0)["narrow"] == 2 * rows * h + rows * f + h * f);
  CHECK(times(one, 1)["widen back"] == 2 * rows * h + rows * f + h * f);
  CHECK(times(one, 1)["narrow back"] == rows * h + 2 * rows * f + h * f);
  CHECK(times(one, 1)["widen weights"] == rows * h + rows * f + 2 * 4 * h * f);
  CHECK(times(one, 1)["narrow weights"] == rows * h + rows * f + 2 * 4 * h * f);
  CHECK(times(one, 0)["norm"] == 2 * 3 * rows * h);
  // Copies: of what attention makes; of gradients of both blocks, and of queries, keys and values.
  CHECK(times(one, 0)["cast"] == 3 * rows * h);
  CHECK(times(one, 1)["cast"] == 3 * rows * (2 * h + 3 * h));
}

TEST_CASE("shared rows are gathered in a byte of a number, and summed in two") {
  transformer gpt = dense(architecture::gpt, attention_kernel::fused);
  gpt.tensor_parallel = 4;
  for (const bool parallel : {false, true}) {
    gpt.sequence_parallel = parallel;
    for (const bool split : {false, true}) {
      const program_chain two = chain_of(gpt, 1, split, one_byte);
      const program_chain one = chain_of(in_fp8(gpt), 1, split, one_byte);
      for (std::size_t job = 0; job < two.programs.size(); ++job) {
        CAPTURE(job);
        CHECK(2 * times(one, job)["gather"] == times(two, job)["gather"]);
        for (const char* sum : {"attended", "attention norm gradient"})
          CHECK(times(one, job)[sum] == times(two, job)[sum]);
      }
      CHECK((times(one, 0)["gather"] > 0) == parallel);
    }
  }
}

TEST_CASE("of what latent attention gathers, positions are turned as they are") {
  transformer model = deepseek_v3;
  model.tensor_parallel = 8, model.sequence_parallel = true, model.experts.parallel = 64;
  const program_chain two = chain_of(model, 4, false, one_byte);
  const program_chain one = chain_of(in_fp8(model), 4, false, one_byte);
  for (const std::size_t job : {0u, 1u})
    for (const char* products : {"gather low keys", "gather low queries"})
      CHECK(2 * times(one, job)[products] == times(two, job)[products]);
  CHECK(times(one, 0)["gather rotary"] > 0);
  CHECK(times(one, 0)["gather rotary"] == times(two, 0)["gather rotary"]);
}

TEST_CASE("programs with products in FP8 are sound, and their gradients go where they went") {
  std::vector<transformer> models;
  for (const architecture layers : {architecture::gpt, architecture::llama})
    for (const attention_kernel attention : {attention_kernel::plain, attention_kernel::fused})
      for (const int slices : {1, 4})
        for (const int t : {1, 4}) {
          transformer model = dense(layers, attention);
          model.slices = slices, model.tensor_parallel = t, model.sequence_parallel = t > 1;
          models.push_back(model);
          model.experts = {.count = 16, .per_token = 2, .shared = 1, .parallel = 8};
          model.further_tokens = 2;
          models.push_back(model);
          model.experts.scores = stretto::expert_scores::activations;
          models.push_back(model);
        }
  transformer model = deepseek_v3;
  models.push_back(model);
  model.latent.queries = 0, model.latent.rotary = 0, model.tensor_parallel = 8;
  model.sequence_parallel = true, model.experts.parallel = 64;
  models.push_back(model);
  const std::vector<std::int32_t> counts{2, 2};
  const auto parts = stretto::transformer_parts(counts);
  for (const transformer& wide : models)
    for (const bool split : {false, true})
      for (const int rank : {0, 1}) {
        const auto made = [&](const transformer& of) {
          return stretto::transformer_chain(of, {.ranks = 2, .chunks = 1}, rank, parts, split);
        };
        const program_chain two = made(wide), one = made(in_fp8(wide));
        CHECK(stretto::sound_program(one).ok());
        // The same ops in the same order, but for copies.
        std::vector<std::string> all[2];
        for (const program_chain* chain : {&two, &one})
          for (const op& each : chain->ops)
            if (!each.name.starts_with("cast"))
              all[chain == &one].emplace_back(each.name);
        CHECK(all[0] == all[1]);
        const auto costs = transformer_chains::measured_chain(one);
        std::int64_t left = 0;
        for (const stretto::job_cost& cost : costs) left += cost.change;
        CHECK(left == 0);
        CHECK(costs[0].change < transformer_chains::measured_chain(two)[0].change);
      }
}

TEST_CASE("measured kernels do not read FP8, whose products take the rate that is given") {
  static constexpr std::int64_t sizes[] = {1, 4096}, took[] = {7, 7, 7, 7, 7, 7, 7, 7};
  static constexpr stretto::measured_kernel kernels[] = {{"product", {sizes, sizes, sizes}, took}};
  stretto::machine on{"measured", 100, 10, 5};
  on.kernels = kernels;
  on.fp8 = 200;
  stretto::op_work work{.flops = 2000, .product = {10, 10, 10}};
  CHECK(on.time(work) == 7);
  work.operand = 4;
  CHECK(on.time(work) == 7);
  work.operand = 1;
  CHECK(on.time(work) == 10);
  work.product = {};
  CHECK(on.time(work) == 10);
}

}  // namespace
