// Layers with experts, and with latent attention, that several ranks share: what each has of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "stretto/model/program_sound.hpp"
#include "stretto/model/transformer/chain.hpp"
#include "unit/transformer_chains.hpp"

namespace {

using stretto::architecture;
using stretto::attention_kernel;
using stretto::expert_scores;
using stretto::program_chain;
using stretto::stream_type;
using stretto::transformer;
using transformer_chains::chain_of;
using transformer_chains::change_of_layer;
using transformer_chains::measured_chain;
using transformer_chains::one_flop;
using transformer_chains::read_by_weights;

enum class splits { layers, rows_too, rows_and_experts };

//! Models with experts, with latent attention and with both, each on one rank; their like on
//! several.
void each_split(
    const std::function<void(const transformer& split, const transformer& whole)>& check) {
  for (const architecture layers : {architecture::gpt, architecture::llama})
    for (const attention_kernel attention : {attention_kernel::plain, attention_kernel::fused})
      for (const int shared : {0, 2})
        for (const int queries : {-1, 0, 24})     // -1: no latent attention
          for (const splits what : {splits::layers, splits::rows_too, splits::rows_and_experts}) {
            const bool mixes = what == splits::rows_and_experts;
            transformer whole{.hidden = 64,
                              .heads = 8,
                              .sequence = 96,
                              .microbatch = 2,
                              .vocabulary = 128,
                              .layers = layers,
                              .attention = attention,
                              .feed_forward = 48};
            if (mixes)
              whole.experts = {16, 3, shared, 8, 0, shared > 0 ? expert_scores::activations
                                                              : expert_scores::results};
            if (queries >= 0) whole.latent = {16, queries, shared > 0 ? 8 : 0, 12};
            if (queries >= 0 && layers == architecture::gpt) continue;
            if (queries < 0 && !mixes) continue;  // Megatron's, of which others tell
            for (const int shards : {2, 4}) {
              transformer split = whole;
              split.tensor_parallel = shards;
              split.sequence_parallel = what != splits::layers;
              CAPTURE(static_cast<int>(layers));
              CAPTURE(static_cast<int>(attention));
              CAPTURE(shared);
              CAPTURE(queries);
              CAPTURE(static_cast<int>(what));
              CAPTURE(shards);
              REQUIRE(split.broken_rule() == stretto::transformer_rule::none);
              check(split, whole);
            }
          }
}

//! A layer's ops on some stream, in all its jobs.
std::int64_t time_on(const transformer& model, stream_type stream, const stretto::machine& on) {
  std::int64_t sum = 0;
  for (const stretto::op& one : chain_of(model, 1, true, on).ops)
    if (one.stream == static_cast<std::uint8_t>(stream) && one.time > 1) sum += one.time;
  return sum;
}

TEST_CASE("ranks that share rows and layers keep their part of all") {
  each_split([](const transformer& split, const transformer& whole) {
    if (!split.sequence_parallel) return;
    for (const bool halves : {false, true})
      for (std::size_t job = 0; job < (halves ? 3u : 2u); ++job)
        CHECK(change_of_layer(split, job, halves) * split.tensor_parallel ==
              change_of_layer(whole, job, halves));
  });
}

TEST_CASE("without sharing rows each keeps the few numbers that latent attention makes of all") {
  transformer model{.hidden = 64,
                    .heads = 8,
                    .sequence = 96,
                    .layers = architecture::llama,
                    .attention = attention_kernel::fused,
                    .latent = {16, 24, 8, 12},
                    .feed_forward = 48};
  const std::int64_t whole = change_of_layer(model, 0, false);
  model.tensor_parallel = 4;
  // Inputs of the blocks, what norms make of them, and the few numbers, normed or not.
  const std::int64_t all = 96 * 4 * (4 * 64 + (16 + 8) + 16 + 2 * 24);
  CHECK(change_of_layer(model, 0, false) == all + (whole - all) / 4);
}

TEST_CASE("ranks that share rows and layers compute their part of all") {
  each_split([](const transformer& split, const transformer& whole) {
    // Without sharing rows each makes the few numbers of all of them, and gradients of what does.
    const std::int64_t t = split.tensor_parallel;
    const std::int64_t low = split.latent.keys + split.latent.rotary + split.latent.queries;
    const std::int64_t copied = split.sequence_parallel ? 0 : 3 * 2 * (2 * 96) * 64 * low;
    CHECK(time_on(split, stream_type::compute, one_flop) * t ==
          time_on(whole, stream_type::compute, one_flop) + (t - 1) * copied);
  });
}

TEST_CASE("each rank sends its rows' copies to experts, and all rows to the shared ones") {
  stretto::machine one_byte{"one byte a ns", std::int64_t{1} << 40, std::int64_t{1} << 40, 1};
  each_split([&](const transformer& split, const transformer& whole) {
    if (split.experts.count == 0 || split.latent.keys > 0) return;
    CHECK(time_on(split, stream_type::data_parallel, one_byte) * split.tensor_parallel ==
          time_on(whole, stream_type::data_parallel, one_byte));
    CHECK(time_on(whole, stream_type::tensor_parallel, one_byte) == 0);
    // Of a gather or a scatter what leaves a rank.
    const std::int64_t t = split.tensor_parallel, ring = 2 * 96 * 64 * 4 * (t - 1) / t;
    // Attention's two forwards, two back and two for the weights; of shared experts as many.
    CHECK(time_on(split, stream_type::tensor_parallel, one_byte) ==
          ring * (split.experts.shared > 0 ? 12 : 6));
  });
}

TEST_CASE("of latent attention few numbers are gathered, and their gradients summed") {
  stretto::machine one_byte{"one byte a ns", std::int64_t{1} << 40, std::int64_t{1} << 40, 1};
  each_split([&](const transformer& split, const transformer&) {
    if (split.latent.keys == 0 || split.experts.count > 0) return;
    const std::int64_t t = split.tensor_parallel, h = 64, rotary = split.latent.rotary;
    const std::int64_t low = 16 + (split.latent.queries > 0 ? 24 : h);
    // Forwards the sums of both blocks; back those of the feed-forward's norm, and of the few
    // numbers: of a sum both halves leave. Where rows are split the few numbers are gathered, for
    // the weights once more; and the model's width nine times, three of each job.
    CHECK(time_on(split, stream_type::tensor_parallel, one_byte) ==
          (split.sequence_parallel ? 9 * h + 3 * low + 2 * rotary : 2 * (3 * h + low + rotary)) *
              (2 * 96 * 4) * (t - 1) / t);
  });
}

TEST_CASE("programs that ranks share are sound, and weights read what they do whole") {
  each_split([](const transformer& split, const transformer&) {
    std::vector<std::string> whole = read_by_weights(chain_of(split, 2, false));
    std::vector<std::string> halves = read_by_weights(chain_of(split, 2, true));
    std::ranges::sort(whole);
    std::ranges::sort(halves);
    REQUIRE(!whole.empty());
    CHECK(whole == halves);
    for (const bool apart : {false, true}) {
      const program_chain chain = chain_of(split, 2, apart);
      CHECK(stretto::sound_program(chain).ok());
      (void)measured_chain(stretto::memory::recompute(chain, stretto::memory::recompute_full{}));
    }
  });
}

TEST_CASE("experts are whole on one rank, all else of a layer is shared, or copied") {
  each_split([](const transformer& split, const transformer& whole) {
    const std::int64_t t = split.tensor_parallel;
    const bool gpt = split.layers == architecture::gpt;
    const std::int64_t held = split.experts.count > 0 ? 2 : 0;
    const std::int64_t f = 48, h = 64, one = h * (gpt ? 2 : 3) * f + (gpt ? f + h : 0);
    // Norms, biases of what is summed, the router, experts, and what makes few numbers of a token.
    const std::int64_t low = split.latent.keys + split.latent.rotary + split.latent.queries;
    const std::int64_t copied =
        (gpt ? (5 + split.experts.shared) * h : 2 * h) + split.latent.keys +
        split.latent.queries + (held > 0 ? 16 * h : 0) + held * one + (low > 0 ? h * low : 0);
    CHECK(split.layer_weights() == copied + (whole.layer_weights() - copied) / t);
    CHECK(split.layer_products() == whole.layer_products());
  });
}

TEST_CASE("replicas sum and deal experts' weights among those who hold them") {
  transformer split{.hidden = 64,
                    .heads = 8,
                    .sequence = 96,
                    .vocabulary = 128,
                    .tensor_parallel = 2,
                    .sequence_parallel = true,
                    .bytes = stretto::mixed_precision,
                    .experts = {.count = 16, .parallel = 8}};
  REQUIRE(split.expert_replicas() == 4);
  // As where four devices share as many experts each, and all else is as it is here.
  const std::int64_t expert = 2 * 64 * 256 + 256 + 64, held = 2 * expert;
  const std::int64_t rest = split.stage_weights({1, false}) - held;
  CHECK(split.summed_weights({1, false}, 4) == rest);
  CHECK(split.summed_weights({1, false}, 8) == rest + held);
  CHECK(split.sum_message({1, false}, 8).bytes ==
        2 * 7 * ((4 * rest + 7) / 8) + 2 * (4 * held / 2));
  split.optimizer_shards = 8;
  CHECK(split.state_bytes({1, false}) ==
        4 * (rest + held) + 12 * ((rest + 7) / 8 + held / 2));
  split.optimizer_shards = 4;
  CHECK(split.state_bytes({1, false}) == 4 * (rest + held) + 12 * ((rest + 3) / 4 + held));
  split.weight_shards = 8;
  CHECK(split.gathered_bytes({1, false}) == 2 * (rest + held));
  CHECK(split.gather_message({1, false}).bytes == 7 * ((2 * rest + 7) / 8) + held);
  split.weight_shards = 4;
  CHECK(split.gathered_bytes({1, false}) == 2 * rest);
}

}  // namespace
