#include "stretto/model/transformer.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stretto/memory/liveness.hpp"
#include "stretto/model/transformer/chain.hpp"
#include "unit/transformer_chains.hpp"

namespace {

using stretto::architecture;
using stretto::attention_kernel;
using stretto::expert_scores;
using stretto::job_kind;
using stretto::program_chain;
using stretto::transformer;
using stretto::transformer_part;
using transformer_chains::chain_of;
using transformer_chains::change_of_layer;
using transformer_chains::check_rule;
using transformer_chains::measured_chain;
using transformer_chains::one_flop;
using transformer_chains::read_by_weights;
using transformer_chains::times;

// Korthikanti et al. 2022: bytes that one layer keeps in half precision.
std::int64_t published_bytes(const transformer& model) {
  const std::int64_t sbh = model.tokens() * model.hidden;
  const std::int64_t as2b = model.heads * model.sequence * model.tokens();
  const std::int64_t t = model.tensor_parallel;
  if (model.sequence_parallel) return (34 * sbh + 5 * as2b) / t;
  return 10 * sbh + (24 * sbh + 5 * as2b) / t;
}

TEST_CASE("sizes that do not go together are told by their rule, and make no chain") {
  using enum stretto::transformer_rule;
  check_rule({}, none);
  for (const auto member : {&transformer::hidden, &transformer::heads, &transformer::sequence,
                            &transformer::microbatch, &transformer::vocabulary}) {
    transformer model;
    model.*member = 0;
    check_rule(model, sizes_positive);
  }
  check_rule({.tensor_parallel = 0}, sizes_positive);
  check_rule({.kv_heads = -1}, sizes_positive);
  check_rule({.slices = 0}, sizes_positive);
  check_rule({.experts = {.count = 2, .parallel = 0}}, sizes_positive);
  check_rule({.heads = 7}, heads_divide_hidden);
  check_rule({.kv_heads = 5}, kv_heads_divide_heads);
  check_rule({.kv_heads = 8}, none);
  check_rule({.heads = 7, .head_width = 100}, none);
  check_rule({.slices = 3}, slices_divide_sequence);
  check_rule({.tensor_parallel = 3}, shards_divide_heads);
  check_rule({.vocabulary = 50257, .tensor_parallel = 2}, shards_divide_heads);
  check_rule({.tensor_parallel = 16, .sequence_parallel = true, .slices = 128},
             shards_divide_heads);
  check_rule({.tensor_parallel = 16, .slices = 128}, none);
  check_rule({.tensor_parallel = 8, .kv_heads = 4}, shards_divide_widths);
  check_rule({.tensor_parallel = 8, .feed_forward = 4098}, shards_divide_widths);
  check_rule({.head_pieces = 0}, sizes_positive);
  check_rule({.vocabulary = 960, .head_pieces = 9}, pieces_divide_vocabulary);
  check_rule({.vocabulary = 960, .tensor_parallel = 8, .head_pieces = 16},
             pieces_divide_vocabulary);
  check_rule({.tensor_parallel = 2, .experts = {.count = 4}}, experts_by_rows);
  check_rule({.tensor_parallel = 2, .sequence_parallel = true, .experts = {.count = 4}},
         experts_among_shards);
  check_rule(
      {.tensor_parallel = 2, .sequence_parallel = true, .experts = {.count = 4, .parallel = 4}},
      none);
  check_rule({.tensor_parallel = 2,
          .sequence_parallel = true,
          .optimizer_shards = 3,
          .experts = {.count = 4, .parallel = 4}},
         optimizer_dealt);
  check_rule({.tensor_parallel = 2,
          .sequence_parallel = true,
          .optimizer_shards = 2,
          .weight_shards = 2,
          .experts = {.count = 4, .parallel = 4}},
         none);
  check_rule({.experts = {.count = 4, .per_token = 5}}, experts_for_token);
  check_rule({.experts = {.count = 4, .parallel = 3}}, experts_dealt);
  check_rule({.experts = {.count = 4, .parallel = 2}}, none);
  check_rule({.optimizer_shards = 0}, sizes_positive);
  check_rule({.optimizer_shards = 3}, none);
  check_rule({.optimizer_shards = 3, .experts = {.count = 4, .parallel = 2}}, optimizer_dealt);
  check_rule({.optimizer_shards = 4, .experts = {.count = 4, .parallel = 2}}, none);
  check_rule({.weight_shards = 0}, sizes_positive);
  check_rule({.weight_shards = 3, .experts = {.count = 4, .parallel = 2}}, weights_dealt);
  check_rule({.weight_shards = 4, .experts = {.count = 4, .parallel = 2}}, none);
}

TEST_CASE("a layer keeps what is published") {
  for (const int t : {1, 2, 8})
    for (const bool parallel : {false, true})
      for (const std::int64_t microbatch : {1, 3}) {
        const transformer model{.hidden = 512,
                                .heads = 8,
                                .sequence = 256,
                                .microbatch = microbatch,
                                .tensor_parallel = t,
                                .sequence_parallel = parallel,
                                .bytes = stretto::mixed_precision};
        CAPTURE(t);
        CAPTURE(parallel);
        const std::int64_t sbh = model.tokens() * model.hidden;
        CHECK(change_of_layer(model, 0, false) == published_bytes(model));
        CHECK(change_of_layer(model, 1, false) == -published_bytes(model));
        // Qi et al. 2023: between its halves a backward keeps 32 s b h.
        const std::int64_t kept = parallel ? 32 * sbh / t : 8 * sbh + 24 * sbh / t;
        CHECK(change_of_layer(model, 1, true) == kept - published_bytes(model));
        CHECK(change_of_layer(model, 2, true) == -kept);
      }
}

TEST_CASE("an optimizer that is dealt keeps what is published") {
  // Rajbhandari et al. 2020, section 5.1: 16 bytes a weight are 4 + 12 / N on each of N replicas,
  // 31.4 GB instead of 120 for 7.5 billion weights and 64 replicas.
  transformer model{.hidden = 4096,
                    .heads = 32,
                    .vocabulary = 32000,
                    .bytes = stretto::mixed_precision,
                    .layers = architecture::llama};
  const std::int64_t weights = model.stage_weights({32, true, 1, true});
  CHECK(model.state_bytes({32, true, 1, true}) == 16 * weights);
  model.optimizer_shards = 64;
  const auto gigabytes = [&](double of_weights) {
    return static_cast<double>(model.state_bytes({32, true, 1, true})) /
           static_cast<double>(weights) * of_weights;
  };
  CHECK(gigabytes(7.5) == doctest::Approx(31.4).epsilon(0.001));
  // The last of the parts is what is left: a weight more is one more for the largest.
  model.hidden = 64, model.optimizer_shards = 1000;
  const std::int64_t few = model.stage_weights({1, true});
  REQUIRE(few % 1000 != 0);
  CHECK(model.state_bytes({1, true}) == 4 * few + 12 * (few / 1000 + 1));
  model.experts.parallel = 2000;  // of no experts, and nothing to its quotient
  CHECK(model.state_bytes({1, true}) == 4 * few + 12 * (few / 1000 + 1));
}

TEST_CASE("what an optimizer keeps of experts is dealt among those who hold them") {
  for (const architecture made_of : {architecture::gpt, architecture::llama}) {
    transformer model{.bytes = stretto::mixed_precision,
                      .layers = made_of,
                      .experts = {.count = 16, .per_token = 2, .shared = 1, .parallel = 4}};
    // One expert more on each of the four.
    transformer larger = model;
    larger.experts.count += 4;
    const std::int64_t router = 4 * model.hidden;
    const std::int64_t expert = larger.layer_weights() - model.layer_weights() - router;
    const std::int64_t held = 4 * expert;
    const std::int64_t all = model.stage_weights({3, false, 1, true});
    model.optimizer_shards = 8;
    CHECK(model.state_bytes({3, false, 1, true}) ==
          4 * all + 12 * ((all - 3 * held + 7) / 8 + 3 * held / 2));
    model.optimizer_shards = 4;  // of each expert one replica holds it, and all of its state
    CHECK(model.state_bytes({3, false, 1, true}) ==
          4 * all + 12 * ((all - 3 * held + 3) / 4 + 3 * held));
  }
}

TEST_CASE(
    "weights that are dealt, and what the optimizer keeps of them, are a part; gradients whole") {
  transformer model{.bytes = stretto::mixed_precision};
  const std::int64_t weights = model.stage_weights({3, true});
  CHECK(model.weight_bytes({3, true}) == 2 * weights);
  CHECK(model.gathered_bytes({3, true}) == 0);
  CHECK(model.gather_message({3, true}).bytes == 0);
  model.weight_shards = 8;
  REQUIRE(weights % 8 == 0);
  CHECK(model.weight_bytes({3, true}) == 2 * weights / 8);
  CHECK(model.state_bytes({3, true}) == 2 * weights + 14 * weights / 8);
  CHECK(model.gathered_bytes({3, true}) == 2 * weights);
  CHECK(model.gather_message({3, true}).bytes == 7 * (2 * weights / 8));
  // The optimizer's may be dealt among more of them, and are not among fewer.
  model.optimizer_shards = 16;
  CHECK(model.state_bytes({3, true}) == 2 * weights + 2 * weights / 8 + 12 * weights / 16);
  model.optimizer_shards = 2;
  CHECK(model.state_bytes({3, true}) == 2 * weights + 14 * weights / 8);
  // Of a sum each keeps its own part; those with the same one sum them around a ring of theirs.
  CHECK(model.sum_message({3, true}, 8).bytes == 7 * (4 * weights / 8));
  CHECK(model.sum_message({3, true}, 24).bytes ==
        7 * (4 * weights / 8) + 2 * 2 * ((4 * weights / 8 + 2) / 3));
  model.optimizer_shards = model.weight_shards = 1;
  CHECK(model.sum_message({3, true}, 8).bytes == 2 * 7 * (4 * weights / 8));
  // An optimizer that is dealt: each sums its own part, and sends the new weights to the others.
  model.optimizer_shards = 8;
  CHECK(model.sum_message({3, true}, 8).bytes == 7 * (4 * weights / 8) + 7 * (2 * weights / 8));
  CHECK(model.sum_message({3, true}, 16).bytes ==
        7 * (4 * weights / 8) + 2 * (4 * weights / 16) + 7 * (2 * weights / 8));
  model.weight_shards = 4;  // whose holders need what two make of their weights
  CHECK(model.sum_message({3, true}, 8).bytes == 7 * (4 * weights / 8) + 2 * weights / 8);
}

TEST_CASE("experts' weights are dealt among those who hold them") {
  transformer model{.bytes = stretto::mixed_precision,
                    .experts = {.count = 16, .per_token = 2, .shared = 1, .parallel = 4}};
  transformer larger = model;
  larger.experts.count += 4;
  const std::int64_t held = 4 * (larger.layer_weights() - model.layer_weights() - 4 * model.hidden);
  const std::int64_t rest = model.stage_weights({1, false}) - held;
  model.weight_shards = 8;
  CHECK(model.weight_bytes({1, false}) == 2 * ((rest + 7) / 8 + held / 2));
  CHECK(model.gather_message({1, false}).bytes == 7 * ((2 * rest + 7) / 8) + held);
  CHECK(model.sum_message({1, false}, 8).bytes == 7 * ((4 * rest + 7) / 8) + 2 * held);
  model.weight_shards = 1, model.optimizer_shards = 8;
  CHECK(model.sum_message({1, false}, 8).bytes ==
        7 * ((4 * rest + 7) / 8) + 7 * ((2 * rest + 7) / 8) + 2 * held + held);
  model.optimizer_shards = 1;
  model.weight_shards = 4;  // of each expert one replica holds it
  CHECK(model.weight_bytes({1, false}) == 2 * ((rest + 3) / 4 + held));
  CHECK(model.gather_message({1, false}).bytes == 3 * ((2 * rest + 3) / 4));
  CHECK(model.gathered_bytes({1, false}) == 2 * rest);
  model.weight_shards = 8;
  CHECK(model.gathered_bytes({1, false}) == 2 * (rest + held));
}

TEST_CASE("the weights of published models") {
  const auto all = [](transformer model, int layers, bool tied) {
    model.tied_head = tied;
    return model.stage_weights({layers, true, 1, true});
  };
  // GPT-2 small and XL, whose head is the embedding.
  CHECK(all({.hidden = 768, .heads = 12, .sequence = 1024, .vocabulary = 50257}, 12, true) ==
        124'439'808);
  CHECK(all({.hidden = 1600, .heads = 25, .sequence = 1024, .vocabulary = 50257}, 48, true) ==
        1'557'611'200);
  // Llama 3.2 1B.
  CHECK(all({.hidden = 2048,
             .heads = 32,
             .vocabulary = 128256,
             .layers = architecture::llama,
             .kv_heads = 8,
             .feed_forward = 8192},
            16, true) == 1'235'814'400);
  // Mistral NeMo, whose heads are narrower than hidden / heads.
  CHECK(all({.hidden = 5120,
             .heads = 32,
             .vocabulary = 131072,
             .layers = architecture::llama,
             .kv_heads = 8,
             .head_width = 128,
             .feed_forward = 14336},
            40, false) == 12'247'782'400);
  // Llama 2 7B, by the default width of 8/3 h; Llama 3 8B and 70B.
  CHECK(all({.hidden = 4096, .heads = 32, .vocabulary = 32000, .layers = architecture::llama}, 32,
            false) == 6'738'415'616);
  transformer model{.hidden = 4096,
                    .heads = 32,
                    .sequence = 8192,
                    .vocabulary = 128256,
                    .layers = architecture::llama,
                    .kv_heads = 8,
                    .feed_forward = 14336};
  CHECK(all(model, 32, false) == 8'030'261'248);
  // What a rank holds: its share, and the norms.
  const std::int64_t whole = model.layer_weights();
  model.tensor_parallel = 8;
  CHECK(8 * (model.layer_weights() - 2 * 4096) == whole - 2 * 4096);
  model = {.hidden = 8192,
           .heads = 64,
           .vocabulary = 128256,
           .layers = architecture::llama,
           .kv_heads = 8,
           .feed_forward = 28672};
  CHECK(all(model, 80, false) == 70'553'706'496);
  // Mixtral 8x7B.
  model = {.hidden = 4096,
           .heads = 32,
           .vocabulary = 32000,
           .layers = architecture::llama,
           .kv_heads = 8,
           .feed_forward = 14336,
           .experts = {.count = 8, .per_token = 2}};
  CHECK(all(model, 32, false) == 46'702'792'704);
  const std::int64_t one = std::int64_t{3} * 4096 * 14336;
  const std::int64_t every = model.layer_weights();
  model.experts.parallel = 4;
  CHECK(model.layer_weights() == every - 6 * one);
  model.experts.shared = 3;
  CHECK(model.layer_weights() == every - 3 * one);
  // What a token meets: two experts, the shared ones, the router.
  CHECK(model.layer_products() ==
        4096 * (2 * 4096 + 2 * 1024) + 5 * one + 8 * 4096 + 2 * model.sequence * 4096);
}

TEST_CASE("of a tied head a rank has one matrix, which its jobs read from either end") {
  transformer model{.hidden = 512,
                    .heads = 8,
                    .vocabulary = 4096,
                    .tensor_parallel = 2,
                    .bytes = stretto::mixed_precision,
                    .tied_head = true};
  transformer untied = model;
  untied.tied_head = false;
  const transformer_part first{2, true}, last{2, false, 1, true};
  transformer_part beside = last;
  beside.beside_embedding = true;
  const std::int64_t table = 4096 * 512 / 2;
  CHECK(model.table_weights() == table);
  // Where it is elsewhere, each end has its copy.
  for (const transformer_part& part : {first, last})
    CHECK(model.state_bytes(part) == untied.state_bytes(part));
  CHECK(untied.state_bytes(beside) == untied.state_bytes(last));
  CHECK(model.state_bytes(beside) == untied.state_bytes(last) - 16 * table);
  CHECK(model.weight_bytes(beside) == untied.weight_bytes(last) - 2 * table);
  CHECK(model.summed_weights(beside, 8) == untied.summed_weights(last, 8) - table);
  CHECK(model.sum_message(beside, 8).bytes < untied.sum_message(last, 8).bytes);
  transformer_part middle{2, false};
  middle.beside_embedding = true;
  CHECK(model.stage_weights(middle) == untied.stage_weights(middle));
  // What replicas hold in parts is gathered for the head as it is for the embedding.
  model.weight_shards = untied.weight_shards = 4;
  CHECK(model.weight_bytes(beside) == untied.weight_bytes(last) - 2 * table / 4);
  CHECK(model.gathered_bytes(beside) == untied.gathered_bytes(last));
  CHECK(model.gather_message(beside) == untied.gather_message(last));
  CHECK(model.gathered_bytes({2, true, 1, true}) ==
        untied.gathered_bytes({2, true, 1, true}) - 2 * table);
  model.head_pieces = 2;
  CHECK(model.broken_rule() == stretto::transformer_rule::tied_head_whole);
  untied.head_pieces = 2;
  CHECK(untied.broken_rule() == stretto::transformer_rule::none);
}

//! Every make of layers, with and without what splits them.
template <class Check>
void each_model(const Check& check) {
  for (const architecture layers : {architecture::gpt, architecture::llama})
    for (const attention_kernel attention : {attention_kernel::plain, attention_kernel::fused})
      for (const std::int64_t kv_heads : {0, 8, 4})
        for (const std::int64_t feed_forward : {0, 1280})
          for (const int slices : {1, 4})
            for (const int t : {1, 4})
              for (const bool parallel : {false, true}) {
                const transformer model{.hidden = 512,
                                        .heads = 8,
                                        .sequence = 256,
                                        .microbatch = 3,
                                        .tensor_parallel = t,
                                        .sequence_parallel = parallel,
                                        .bytes = stretto::mixed_precision,
                                        .layers = layers,
                                        .attention = attention,
                                        .kv_heads = kv_heads,
                                        .feed_forward = feed_forward,
                                        .slices = slices};
                CAPTURE(static_cast<int>(layers));
                CAPTURE(static_cast<int>(attention));
                CAPTURE(kv_heads);
                CAPTURE(feed_forward);
                CAPTURE(slices);
                CAPTURE(t);
                CAPTURE(parallel);
                check(model);
              }
}

//! Layers with experts, dealt to one device and to several, with shared ones and without.
template <class Check>
void each_mixture(const Check& check) {
  for (const architecture layers : {architecture::gpt, architecture::llama})
    for (const std::int64_t per_token : {1, 3})
      for (const std::int64_t shared : {0, 2})
        for (const int parallel : {1, 4})
          for (const expert_scores scores : {expert_scores::results, expert_scores::activations}) {
            const transformer model{.hidden = 512,
                                    .heads = 8,
                                    .sequence = 256,
                                    .microbatch = 3,
                                    .bytes = stretto::mixed_precision,
                                    .layers = layers,
                                    .attention = attention_kernel::fused,
                                    .feed_forward = 384,
                                    .experts = {16, per_token, shared, parallel, 0, scores}};
            CAPTURE(static_cast<int>(layers));
            CAPTURE(per_token);
            CAPTURE(shared);
            CAPTURE(parallel);
            CAPTURE(static_cast<int>(scores));
            check(model);
          }
}

TEST_CASE(
    "a layer with experts keeps copies of tokens where their experts are, and what those make") {
  each_mixture([](const transformer& model) {
    const std::int64_t rows = 3 * 256;
    const std::int64_t h = 512;
    const std::int64_t k = model.experts.per_token;
    const std::int64_t shared = model.experts.shared;
    const bool gpt = model.layers == architecture::gpt;
    const std::int64_t f = 384;
    const std::int64_t wide = gpt ? f : 2 * f;
    const std::int64_t attention = 2 * 6 * h + 4 * 8 + (gpt ? h : 0);
    const std::int64_t routing = 4 * 16;
    // A copy where its expert is, and what comes back or its score.
    const bool scored = model.experts.scores == expert_scores::activations;
    const std::int64_t copy = 2 * (h + wide + f) + (scored ? 4 : 2 * h);
    const std::int64_t saved = rows * (attention + 4 * h + (gpt ? h : 0) + routing + k * copy +
                                       2 * shared * (wide + f));
    CHECK(change_of_layer(model, 0, false) == saved);
    CHECK(change_of_layer(model, 1, false) == -saved);
    // For the weights: of the attention as ever; copies, what is narrowed, and gradients of
    // results.
    const std::int64_t kept = rows * (2 * 6 * h + 2 * h + routing + 2 * k * (2 * h + wide + f) +
                                      (shared > 0 ? 2 * h + 2 * shared * (wide + f) : 0));
    CHECK(change_of_layer(model, 1, true) == kept - saved);
    CHECK(change_of_layer(model, 2, true) == -kept);
  });
}

TEST_CASE("experts take what their copies take, and copies travel there and back") {
  stretto::machine slow{"one byte a ns between nodes", std::int64_t{1} << 60, std::int64_t{1} << 60,
                        std::int64_t{1} << 60};
  slow.network = 1;
  each_mixture([&](const transformer& model) {
    const std::int64_t rows = 3 * 256;
    std::int64_t computes = 0;
    std::int64_t communicates = 0;
    const auto products = chain_of(model, 1, false, one_flop);
    for (const stretto::op& one : products.ops)
      if (one.stream == 0 && one.time > 1) computes += one.time;
    const std::int64_t attention = 256 * 512;
    CHECK(computes == 6 * rows * (model.layer_products() - attention) + rows * attention * 7);
    transformer lone = model;
    lone.node_devices = 1;
    const auto messages = chain_of(lone, 1, false, slow);
    int count = 0;
    for (const stretto::op& one : messages.ops)
      if (one.stream != 0) {
        CHECK(one.stream == static_cast<int>(stretto::stream_type::data_parallel));
        communicates += one.time;
        ++count;
      }
    const int devices = model.experts.parallel;
    CHECK(count == (devices == 1 ? 0 : 4));
    const std::int64_t copies = rows * model.experts.per_token;
    const std::int64_t scores =
        model.experts.scores == expert_scores::activations ? 2 * copies * 4 : 0;
    CHECK(communicates == (4 * copies * 512 * 2 + scores) * (devices - 1) / devices);
  });
}

TEST_CASE("scores that multiply activations have their gradient made there, and none of results") {
  const stretto::machine moves{"moves", std::int64_t{1} << 60, 1, std::int64_t{1} << 60};
  each_mixture([&](const transformer& model) {
    if (model.experts.scores == expert_scores::results) return;
    transformer other = model;
    other.experts.scores = expert_scores::results;
    const std::int64_t rows = 3 * 256, copies = rows * model.experts.per_token;
    const std::int64_t routing = rows * 16 * 4, results = copies * 512 * 2;
    for (const std::size_t job : {0u, 1u}) {
      auto more = times(chain_of(other, 1, false, moves), job);  // what an op moves more than these
      for (auto& [name, bytes] : more) bytes = -bytes;
      for (const auto& [name, bytes] : times(chain_of(model, 1, false, moves), job))
        more[name] += bytes;
      for (const auto& [name, bytes] : more) {
        CAPTURE(name);
        CHECK(bytes == (name == "permute"                   ? 4 * copies
                        : name == "experts activation"      ? 4 * copies
                        : name == "unpermute back"          ? -(routing + results)
                        : name == "experts activation back" ? 8 * copies
                        : name == "permute back"            ? routing + 4 * copies
                                                            : 0));
      }
      CHECK(more.contains(job == 0 ? "permute" : "permute back"));
    }
  });
}

TEST_CASE("weights' gradients are read and written where they are added up") {
  const stretto::machine moves{"moves", std::int64_t{1} << 60, 1, std::int64_t{1} << 60};
  const auto takes = [&](const stretto::precision& bytes, std::string_view name) {
    const transformer model{.hidden = 512, .heads = 8, .sequence = 64, .bytes = bytes};
    std::int64_t sum = 0;
    for (const stretto::op& one : chain_of(model, 1, false, moves).ops)
      if (one.name == name) sum += one.time;
    return sum;
  };
  const std::int64_t rows = 2 * 64 * (512 + 2048), matrix = 512 * 2048;
  CHECK(takes(stretto::mixed_precision, "widen") == rows + 2 * matrix);
  CHECK(takes(stretto::mixed_precision, "widen weights") == rows + 4 * matrix);
  CHECK(takes(stretto::mixed_precision_wide_gradients, "widen weights") == rows + 8 * matrix);
}

TEST_CASE("a layer keeps, whatever it is made of, what its blocks say") {
  each_model([](const transformer& model) {
    const std::int64_t rows = 3 * 256 / model.slices;
    const std::int64_t t = model.tensor_parallel;
    const std::int64_t h = 512;
    const std::int64_t kv = model.kv_heads == 4 ? 256 : 512;
    const bool gpt = model.layers == architecture::gpt;
    const std::int64_t f = model.feed_forward > 0 ? 1280 : gpt ? 2048 : 1536;
    // Bytes of a row, where all ranks hold it and where each has its share: inputs and norms of
    // both blocks, and masks; queries and context, keys and values, what the feed-forward makes.
    const std::int64_t whole = (gpt ? 10 : 8) * h;
    std::int64_t shared = 4 * h + 4 * kv + (gpt ? 4 : 6) * f;
    if (model.slices > 1) shared += 4 * kv;  // and gradients of keys and values, from later slices
    if (model.attention == attention_kernel::fused)
      shared += 8 * 4;
    else
      shared += 8 * 256 * (gpt ? 5 : 2);  // softmax, and what dropout makes of it, and its mask
    const std::int64_t saved =
        model.sequence_parallel ? rows * (whole + shared) / t : rows * whole + rows * shared / t;
    CHECK(change_of_layer(model, 0, false) == saved);
    CHECK(change_of_layer(model, 1, false) == -saved);
    // Between the halves: norms' results, context, what is narrowed, and the gradients of the four
    // products' results. The gradient that comes into a layer without dropout is one of them.
    const std::int64_t wide = gpt ? f : 2 * f;
    const std::int64_t split_whole = 2 * 2 * h + 2 * 2 * h;
    const std::int64_t split_shared = 2 * (h + f + wide + h + 2 * kv);
    const std::int64_t kept = model.sequence_parallel
                                  ? rows * (split_whole + split_shared) / t
                                  : rows * split_whole + rows * split_shared / t;
    CHECK(change_of_layer(model, 1, true) == kept - saved);
    CHECK(change_of_layer(model, 2, true) == -kept);
  });
}

TEST_CASE("the backward for the weights reads what the whole one does, before it is changed") {
  const auto check = [](const transformer& model) {
    std::vector<std::string> whole = read_by_weights(chain_of(model, 2, false));
    std::vector<std::string> split = read_by_weights(chain_of(model, 2, true));
    std::sort(whole.begin(), whole.end());
    std::sort(split.begin(), split.end());
    REQUIRE(whole.size() > 0);
    CHECK(whole == split);
  };
  each_model(check);
  each_mixture(check);
}

TEST_CASE("what tensor parallelism sends: two sums a job, or their halves and what weights need") {
  const auto count = [](bool parallel, bool split, stretto::job_kind kind) {
    const transformer model{.hidden = 512,
                            .heads = 8,
                            .sequence = 256,
                            .tensor_parallel = 4,
                            .sequence_parallel = parallel,
                            .bytes = stretto::mixed_precision};
    const program_chain chain = chain_of(model, 1, split);
    int made = 0;
    for (const stretto::program& job : chain.programs)
      for (const stretto::op& one : chain.ops_of(job)) made += job.kind == kind && one.collective;
    return made;
  };
  using enum stretto::job_kind;
  for (const bool split : {false, true}) {
    CHECK(count(false, split, forward) == 2);
    CHECK(count(true, split, forward) == 4);
  }
  CHECK(count(false, false, backward) == 2);
  // Megatron-LM's: both products' gradients come in gathered, both norms' results again, and both
  // gradients go out scattered.
  CHECK(count(true, false, backward) == 6);
  CHECK(count(true, true, backward_input) == 4);
  CHECK(count(true, true, backward_weight) == 4);
  CHECK(count(false, true, backward_weight) == 0);
}

TEST_CASE("products take what their sizes say, and a fused attention half of its scores") {
  each_model([&](const transformer& model) {
    const std::int64_t rows = 3 * 256 / model.slices;
    const std::int64_t t = model.tensor_parallel;
    const auto chain = chain_of(model, 1, false, one_flop);
    std::map<std::string_view, std::int64_t> times[2];
    std::int64_t all[2] = {};
    for (std::size_t job = 0; job < 2; ++job)
      for (const stretto::op& one : chain.ops_of(chain.programs[job])) {
        if (one.stream != 0) continue;
        const std::int64_t time = one.time <= 1 ? 0 : one.time;  // what moves few bytes
        times[job][one.name] += time;
        all[job] += time;
      }
    const std::int64_t scores = 2 * rows * 256 * 512 / t;
    const bool fused = model.attention == attention_kernel::fused;
    CHECK(times[0]["qkv"] == 2 * rows * 512 * (512 + model.key_width() + model.value_width()) / t);
    CHECK(times[0]["narrow"] == 2 * rows * 512 * model.feed_forward_width() / t);
    CHECK(times[0]["widen"] == 2 * rows * 512 * model.wide() / t);
    CHECK(times[0][fused ? "attention" : "scores"] == scores);
    CHECK(times[1][fused ? "attention back" : "scores back"] == scores * (fused ? 5 : 4) / 2);
    const std::int64_t matrices = model.layer_products() - (fused ? 1 : 2) * 256 * 512;
    CHECK(all[0] == 2 * rows * matrices / t + scores * (fused ? 1 : 2));
    CHECK(all[1] == 4 * rows * matrices / t + scores * (fused ? 5 : 8) / 2);
  });
}

}  // namespace
