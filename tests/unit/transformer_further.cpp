// Layers behind the head that foretell further tokens: what they hold, keep and take, and whose
// gradients meet where.
#include "stretto/model/transformer/further.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "stretto/model/program_sound.hpp"
#include "stretto/model/transformer/chain.hpp"
#include "unit/transformer_chains.hpp"

namespace {

using stretto::architecture;
using stretto::attention_kernel;
using stretto::job_kind;
using stretto::program_chain;
using stretto::transformer;
using stretto::transformer_part;
using transformer_chains::change_of_layer;
using transformer_chains::deepseek_v3;
using transformer_chains::measured_chain;
using transformer_chains::one_flop;
using transformer_chains::read_by_weights;

transformer small(architecture layers, int further) {
  return {.hidden = 64,
          .heads = 8,
          .sequence = 96,
          .microbatch = 2,
          .vocabulary = 192,
          .layers = layers,
          .feed_forward = 48,
          .further_tokens = further};
}

//! Of the last of two ranks, with so many layers and the head.
program_chain last_of(const transformer& model, int layers, bool split,
                      const stretto::machine& on = {}) {
  const std::vector<std::int32_t> counts{2, layers};
  return stretto::transformer_chain(model, {.ranks = 2, .chunks = 1}, 1,
                                    stretto::transformer_parts(counts), split, on);
}

void each_kind(const std::function<void(const transformer&)>& check) {
  for (const int further : {1, 3}) {
    for (const architecture layers : {architecture::gpt, architecture::llama})
      for (const int shards : {1, 2})
        for (const bool rows : {false, true}) {
          transformer model = small(layers, further);
          model.tensor_parallel = shards;
          model.sequence_parallel = rows;
          CAPTURE(further);
          CAPTURE(static_cast<int>(layers));
          CAPTURE(shards);
          CAPTURE(rows);
          check(model);
          if (!rows) continue;
          model.experts = {.count = 8, .per_token = 2, .shared = 1, .parallel = 4};
          check(model);
        }
    transformer latent = small(architecture::llama, further);
    latent.latent = {16, 24, 8, 12};
    check(latent);
    transformer shared = small(architecture::llama, further);
    shared.context_parallel = 4;
    check(shared);
  }
}

TEST_CASE("the weights of DeepSeek-V3's prediction of a second token are the published ones") {
  transformer model = deepseek_v3;
  // 61 layers in one stage, with both ends: 671 billion; and 11.5 that are not shared with these.
  const transformer_part all{61, true, 1, true};
  const std::int64_t without = model.stage_weights(all);
  CHECK(static_cast<double>(without) == doctest::Approx(671e9).epsilon(0.001));
  model.further_tokens = 1;
  const std::int64_t more = model.stage_weights(all) - without;
  CHECK(static_cast<double>(more) == doctest::Approx(11.5e9).epsilon(0.01));
  CHECK(more == model.layer_weights() + 2 * 7168 * 7168 + 3 * 7168);
}

TEST_CASE("a table is with the head where it is not on its rank, once") {
  for (const architecture layers : {architecture::gpt, architecture::llama}) {
    const std::int64_t h = 64, norm = layers == architecture::gpt ? 2 * h : h, table = 192 * h;
    transformer model = small(layers, 0);
    const transformer_part both{4, true, 1, true}, last{2, false, 1, true, 2},
        beside{2, false, 1, true, 2, true}, middle{2, false, 0, false, 2};
    transformer further = model;
    further.further_tokens = 2;
    const std::int64_t layer = model.layer_weights() + 2 * h * h + 3 * norm;
    const auto more = [&](const transformer_part& part) {
      return further.stage_weights(part) - model.stage_weights(part);
    };
    CHECK(more(both) == 2 * layer);
    CHECK(more(last) == 2 * layer + table);
    CHECK(more(beside) == 2 * layer);
    CHECK(more(middle) == 0);
    // A tied head is a table.
    model.tied_head = further.tied_head = true;
    for (const transformer_part& part : {both, last, beside}) CHECK(more(part) == 2 * layer);
    CHECK(more(middle) == 0);
  }
  // Experts of these layers are dealt as any others'.
  transformer mixed = small(architecture::llama, 2);
  mixed.experts = {.count = 8, .parallel = 4};
  CHECK(mixed.stage_weights({1, false, 1, true, 2}) -
            mixed.summed_weights({1, false, 1, true, 2}, 4) ==
        3 * 2 * 3 * 64 * 48);
}

TEST_CASE("each such layer keeps what one does, what it begins with, and its logits") {
  for (const architecture layers : {architecture::gpt, architecture::llama}) {
    transformer model = small(layers, 0);
    const std::int64_t layer = change_of_layer(model, 0, false);
    const std::int64_t rows = 2 * 96, h = 64;
    const std::int64_t without = measured_chain(last_of(model, 2, false))[0].change;
    for (const int further : {1, 2, 3}) {
      model.further_tokens = further;
      const auto jobs = measured_chain(last_of(model, 2, false));
      // The embedding, it and the rows normed, what the layer takes, the head's norm.
      CHECK(jobs[0].change - without == further * (layer + rows * 4 * (5 * h + 192)));
      CHECK(jobs[0].change + jobs[1].change == 0);
      const auto halves = measured_chain(last_of(model, 2, true));
      CHECK(halves[0].change + halves[1].change + halves[2].change == 0);
    }
  }
}

TEST_CASE("each such layer takes what one does, a product of two vectors, and the head once more") {
  const auto computes = [](const program_chain& chain) {
    std::int64_t sum = 0;
    for (const stretto::op& one : chain.ops)
      if (one.stream == 0 && one.time > 1) sum += one.time;
    return sum;
  };
  for (const architecture layers : {architecture::gpt, architecture::llama})
    for (const bool split : {false, true}) {
      transformer model = small(layers, 0);
      const std::int64_t without = computes(last_of(model, 2, split, one_flop));
      const std::int64_t layer = computes(last_of(model, 3, split, one_flop)) - without;
      model.further_tokens = 2;
      CHECK(computes(last_of(model, 2, split, one_flop)) - without ==
            2 * (layer + 3 * 2 * (2 * 96) * (2 * 64 * 64 + 192 * 64)));
    }
}

TEST_CASE("what leaves the stage backwards has met the gradients of every head") {
  each_kind([](const transformer& model) {
    for (const bool split : {false, true}) {
      const program_chain chain = last_of(model, 2, split);
      CHECK(stretto::sound_program(chain).ok());
      std::vector<unsigned> met(chain.buffers.size());  // a bit for each head
      unsigned head = 1, sent = 0, embedded = 0;
      int embeds = 0;
      for (const stretto::program& job : chain.programs) {
        if (job.kind == job_kind::forward) continue;
        for (const stretto::op& one : chain.ops_of(job)) {
          unsigned all = 0;
          for (const stretto::op_use& use : chain.uses_of(one))
            if (use.how == stretto::touch::reads)
              all |= met[static_cast<std::size_t>(chain.storage_of(use.buffer))];
          if (one.name == "logits back") all |= head, head *= 2;
          if (one.name == "send") sent = all;
          if (one.name == "embed weights") embedded |= all, ++embeds;
          for (const stretto::op_use& use : chain.uses_of(one))
            if (use.how == stretto::touch::writes)
              met[static_cast<std::size_t>(chain.storage_of(use.buffer))] = all;
        }
      }
      const unsigned heads = 1u << (model.further_tokens + 1);
      CHECK(head == heads);
      CHECK(sent == heads - 1);
      // The deepest head goes back first; the model's own, last, meets no further embedding.
      CHECK(embeds == model.further_tokens);
      CHECK(embedded == heads / 2 - 1);
    }
    std::vector<std::string> whole = read_by_weights(last_of(model, 2, false));
    std::vector<std::string> halves = read_by_weights(last_of(model, 2, true));
    std::ranges::sort(whole);
    std::ranges::sort(halves);
    CHECK(whole == halves);
    (void)measured_chain(
        stretto::memory::recompute(last_of(model, 2, true), stretto::memory::recompute_full{}));
  });
}

TEST_CASE("each begins with what the one before has made, and they go back in reverse") {
  each_kind([](const transformer& model) {
    const program_chain chain = last_of(model, 2, true);
    const auto named = [&](const stretto::op_use& use) {
      return chain.buffers[static_cast<std::size_t>(use.buffer)].name;
    };
    // What heads norm, and what such layers begin with; keys as they are attended to, and back.
    std::vector<std::int32_t> behind, begins, ahead, back;
    for (const stretto::op& one : chain.ops) {
      const auto uses = chain.uses_of(one);
      if (one.name == "norm" && named(uses[1]) == "head norm") behind.push_back(uses[0].buffer);
      if (one.name == "norm" && named(uses[1]) == "joined" && named(uses[0]) == "output")
        begins.push_back(uses[0].buffer);
      if (one.name == "scores") ahead.push_back(uses[0].buffer);
      if (one.name == "scores back") back.push_back(uses[1].buffer);
    }
    CHECK(behind.size() == static_cast<std::size_t>(model.further_tokens) + 1);
    behind.pop_back();
    CHECK(begins == behind);
    std::ranges::reverse(back);
    CHECK(ahead == back);
    CHECK(ahead.size() == 2 + begins.size());
  });
}

TEST_CASE("ranks that share rows gather both vectors of each, and for the weights once more") {
  const stretto::machine one_byte{"one byte a ns", std::int64_t{1} << 40, std::int64_t{1} << 40, 1};
  transformer model = small(architecture::llama, 0);
  model.tensor_parallel = 2;
  model.sequence_parallel = true;
  const auto sent = [&](int layers) {
    std::int64_t sum = 0;
    for (const stretto::op& one : last_of(model, layers, true, one_byte).ops)
      if (one.stream != 0) sum += one.time;
    return sum;
  };
  const std::int64_t without = sent(2), layer = sent(3) - without;
  model.further_tokens = 1;
  // Of the model's width: the embedding, 1; joined, 2 and 1 of what they make; back 1, and 2; for
  // the weights 1 and 2. Of the head 3, and its rows' sums.
  CHECK(sent(2) - without == layer + (13 * 64 * 4 + 16) * (2 * 96) / 2);
}

TEST_CASE(
    "layers that foretell further tokens are numbered on, also behind a stage of the head alone") {
  transformer model = small(architecture::llama, 2);
  model.attention = attention_kernel::fused;
  model.window = 8;
  model.window_pattern = 3;  // of every three the last, and so layer 5, has none
  const auto took = [&](const std::vector<transformer_part>& parts) {
    const program_chain chain =
        stretto::transformer_chain(model, {.ranks = 2, .chunks = 1}, 1, parts, false, one_flop);
    std::vector<std::int64_t> times;
    for (const stretto::op& one : chain.ops_of(chain.programs[0]))
      if (one.name == "attention") times.push_back(one.time);
    return times;
  };
  const auto of = [&](bool windowed) { return 2 * 96 * model.attends_twice(windowed) * 2 * 64; };
  CHECK(took({{4, true}, {0, false, 1, true, 4}}) == std::vector{of(true), of(false)});
  CHECK(took({{2, true}, {2, false, 1, true, 2}}) ==
        std::vector{of(false), of(true), of(true), of(false)});
  // Where all layers have feed-forwards for experts, so have these.
  transformer dense = small(architecture::llama, 2);
  dense.experts = {.count = 8};
  dense.dense_layers = 5;
  const std::int64_t begins = 2 * 64 * 64 + 3 * 64, table = 192 * 64;
  transformer none = dense;
  none.further_tokens = 0;
  const transformer_part last{2, false, 1, true, 2};
  CHECK(dense.stage_weights(last) - none.stage_weights(last) ==
        dense.layer_weights({.dense = true}) + dense.layer_weights() + 2 * begins + table);
}

TEST_CASE("a head that foretells further tokens is whole") {
  using enum stretto::transformer_rule;
  transformer model = small(architecture::gpt, 1);
  CHECK(model.broken_rule() == none);
  model.further_tokens = -1;
  CHECK(model.broken_rule() == sizes_positive);
  model.further_tokens = 1, model.head_pieces = 2;
  CHECK(model.broken_rule() == further_head_whole);
  CHECK_THROWS_WITH_AS(
      last_of(model, 2, true),
      "stretto::transformer: with further_tokens the head is whole: head_pieces must "
      "be 1",
      std::invalid_argument);
}

}  // namespace
