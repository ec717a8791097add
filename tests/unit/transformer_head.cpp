#include "stretto/model/transformer/head.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/memory/liveness.hpp"
#include "stretto/memory/recompute.hpp"
#include "stretto/model/transformer/chain.hpp"

namespace {

using stretto::job_cost;
using stretto::placement;
using stretto::placement_kind;
using stretto::program_chain;
using stretto::transformer;
using stretto::transformer_part;
namespace memory = stretto::memory;

constexpr stretto::machine flop_a_ns{"one flop a ns", 1, std::int64_t{1} << 40,
                                     std::int64_t{1} << 40};

//! An embedding and a layer, then stages of so many pieces each.
std::vector<transformer_part> behind_a_layer(std::initializer_list<int> pieces) {
  std::vector<transformer_part> parts{{1, true}};
  for (const int count : pieces) parts.push_back({0, false, count, parts.size() == 1});
  return parts;
}

program_chain cut_chain(const transformer& model, const std::vector<transformer_part>& parts,
                        int rank, bool split, const stretto::machine& on = {}) {
  const placement where{.ranks = static_cast<int>(parts.size()), .chunks = 1};
  return stretto::transformer_chain(model, where, rank, parts, split, on);
}

std::vector<job_cost> cut_costs(const program_chain& chain) {
  std::vector<job_cost> made(chain.programs.size());
  const auto answer = memory::measure_chain(chain, made);
  REQUIRE(answer.ok());
  return made;
}

template <class Check>
void each_cut_head(const Check& check) {
  for (const auto layers : {stretto::architecture::gpt, stretto::architecture::llama})
    for (const int t : {1, 4})
      for (const bool parallel : {false, true})
        for (const int slices : {1, 4}) {
          transformer model{.hidden = 64,
                            .heads = 8,
                            .sequence = 32,
                            .microbatch = 3,
                            .vocabulary = 960,
                            .tensor_parallel = t,
                            .sequence_parallel = parallel,
                            .bytes = stretto::mixed_precision,
                            .layers = layers,
                            .slices = slices,
                            .head_pieces = 5};
          CAPTURE(static_cast<int>(layers));
          CAPTURE(t);
          CAPTURE(parallel);
          CAPTURE(slices);
          check(model);
        }
}

//! Of all products with the vocabulary.
std::int64_t product_time(const program_chain& chain) {
  std::int64_t sum = 0;
  for (const stretto::op& one : chain.ops)
    if (one.name.starts_with("logits")) sum += one.time;
  return sum;
}

TEST_CASE("the pieces of a head have together what the whole has") {
  each_cut_head([](const transformer& model) {
    transformer uncut = model;
    uncut.head_pieces = 1;
    std::int64_t weights = 0;
    const auto parts = behind_a_layer({1, 2, 1, 1});
    for (const transformer_part& part : parts) weights += model.stage_weights(part);
    CHECK(weights == uncut.stage_weights({1, true, 1, true}));
    for (const bool split : {false, true}) {
      std::int64_t products = 0;
      for (int rank = 1; rank < 5; ++rank)
        products += product_time(cut_chain(model, parts, rank, split, flop_a_ns));
      const program_chain whole = cut_chain(uncut, behind_a_layer({1}), 1, split, flop_a_ns);
      CHECK(products == product_time(whole));
      CHECK(products == 3 * 2 * (32 / model.slices * 3) * (960 / model.tensor_parallel) * 64);
    }
  });
}

TEST_CASE("a piece keeps the last norm's result and its logits, whole or split") {
  each_cut_head([](const transformer& model) {
    const std::int64_t rows = 32 / model.slices * 3;
    const std::int64_t t = model.tensor_parallel;
    const std::int64_t row = rows * 64 * 2 / (model.sequence_parallel ? t : 1);
    const std::int64_t logits = rows * (960 / t) * 4;
    const auto parts = behind_a_layer({1, 2, 1, 1});
    for (int rank = 1; rank < 5; ++rank) {
      CAPTURE(rank);
      const std::int64_t pieces = parts[static_cast<std::size_t>(rank)].head_pieces;
      const std::int64_t kept = row + logits / 5 * pieces;
      // The first has the norm's input, too; the last what it sends back of the rows' sums.
      const std::int64_t more = rank == 1 ? row : rank == 4 ? 12 * rows : 0;
      const auto halves = cut_costs(cut_chain(model, parts, rank, true));
      CHECK(halves[0].change == kept + more);
      CHECK(halves[1].change == -more);
      CHECK(halves[2].change == -kept);
      const auto whole = cut_costs(cut_chain(model, parts, rank, false));
      CHECK(whole[0].change == kept + more);
      CHECK(whole[1].change == -kept - more);
      const auto again =
          memory::recompute(cut_chain(model, parts, rank, false), memory::recompute_full{});
      CHECK(cut_costs(again)[0].change == row + (rank == 4 ? 12 * rows : 0));  // what came in
    }
  });
}

TEST_CASE("what goes between stages has room for the sums of rows, which go along the pieces") {
  each_cut_head([](const transformer& model) {
    const std::int64_t rows = 32 / model.slices * 3;
    transformer uncut = model;
    uncut.head_pieces = 1;
    program_chain none;
    const stretto::transformer_writer writer(model, none);
    const std::int64_t row = stretto::transformer_writer(uncut, none).message_bytes();
    CHECK(row == rows * 64 * 2 / (model.sequence_parallel ? model.tensor_parallel : 1));
    CHECK(writer.message_bytes() == row + 12 * rows);
    const auto parts = behind_a_layer({1, 2, 1, 1});
    const auto touched = [&](int rank, std::size_t job, std::string_view name) {
      const program_chain chain = cut_chain(model, parts, rank, true);
      for (const stretto::op& one : chain.ops_of(chain.programs[job]))
        if (one.name == name) return one.use_count;
      return 0;
    };
    for (int rank = 0; rank < 5; ++rank) {
      CAPTURE(rank);
      CHECK(touched(rank, 0, "receive") == (rank == 0 ? 0 : rank == 1 ? 1 : 2));
      CHECK(touched(rank, 0, "send") == (rank == 4 ? 0 : rank == 0 ? 1 : 2));
      CHECK(touched(rank, 1, "receive") == (rank == 4 ? 0 : rank == 0 ? 1 : 2));
      CHECK(touched(rank, 1, "send") == (rank == 0 ? 0 : rank == 1 ? 1 : 2));
      // The loss is the last's forward's, and everybody else's backward's.
      CHECK(touched(rank, 0, "loss") == (rank == 4 ? 3 : 0));
      CHECK(touched(rank, 1, "loss") == (rank == 0 || rank == 4 ? 0 : 3));
    }
  });
}

TEST_CASE("pieces on one stage are the whole head") {
  each_cut_head([](const transformer& model) {
    transformer uncut = model;
    uncut.head_pieces = 1;
    for (const bool split : {false, true}) {
      const program_chain pieces = cut_chain(model, behind_a_layer({5}), 1, split, flop_a_ns);
      const program_chain whole = cut_chain(uncut, behind_a_layer({1}), 1, split, flop_a_ns);
      CHECK(pieces.buffers == whole.buffers);
      CHECK(pieces.uses == whole.uses);
      CHECK(pieces.ops == whole.ops);
      CHECK(pieces.programs == whole.programs);
    }
  });
}

TEST_CASE("stages of one rank hand on between pieces, and give back all that they keep") {
  each_cut_head([](const transformer& model) {
    for (const placement_kind kind : {placement_kind::wave, placement_kind::looped})
      for (const int ranks : {1, 2, 3})
        for (const bool split : {false, true}) {
          const placement where{.kind = kind, .ranks = ranks, .chunks = 4};
          // The pieces begin on the second stage, and are on all behind.
          std::vector<transformer_part> parts;
          transformer cut = model;
          cut.vocabulary = 8 * 24 * 11;
          cut.head_pieces = where.stages() - 1;
          while (cut.vocabulary / cut.tensor_parallel % cut.head_pieces != 0) cut.vocabulary += 8;
          parts.push_back({1, true});
          while (static_cast<int>(parts.size()) < where.stages())
            parts.push_back({0, false, 1, parts.size() == 1});
          for (int rank = 0; rank < ranks; ++rank) {
            const program_chain chain = stretto::transformer_chain(cut, where, rank, parts, split);
            std::int64_t left = 0;
            int losses = 0;
            for (const job_cost& one : cut_costs(chain)) left += one.change;
            CHECK(left == 0);
            int kept = 0;
            int left_to_others = 0;
            for (const stretto::op& one : chain.ops) {
              losses += one.name == "loss" ? 1 : 0;
              kept += one.name == "hand on" ? 1 : 0;
              left_to_others += one.name == "send" ? 1 : 0;
            }
            CHECK(losses == (rank == 0 ? 3 : 4));
            // Forwards and back, each stage but the ends leaves what it makes.
            int stay = 0;
            for (int stage = 0; stage + 1 < where.stages(); ++stage)
              if (where.rank_of(stage, 0) == rank && where.rank_of(stage + 1, 0) == rank) ++stay;
            const bool last = where.rank_of(where.stages() - 1, 0) == rank;
            CHECK(kept == 2 * stay);
            CHECK(kept + left_to_others == 2 * 4 - (rank == 0 ? 1 : 0) - (last ? 1 : 0));
          }
        }
  });
}

TEST_CASE("a stage without anything hands on, and does nothing for the weights") {
  const transformer model{.hidden = 64, .heads = 8, .sequence = 32, .vocabulary = 960};
  const std::vector<transformer_part> parts{{2, true}, {}, {1, false, 1, true}};
  for (const bool split : {false, true}) {
    const program_chain chain = cut_chain(model, parts, 1, split);
    REQUIRE(chain.programs.size() == (split ? 3 : 2));
    for (const job_cost& one : cut_costs(chain)) CHECK(one.change == 0);
    if (split) CHECK(chain.ops_of(chain.programs[2]).front().name == "nothing");
  }
}

TEST_CASE("parts that are no pipeline are refused") {
  const transformer model{.vocabulary = 960, .head_pieces = 3};
  const auto refused = [&](const std::vector<transformer_part>& parts, const std::string& why) {
    const std::string words = "stretto::transformer_chain: " + why;
    CHECK_THROWS_WITH_AS(cut_chain(model, parts, 0, true), words.c_str(), std::invalid_argument);
  };
  CHECK(!cut_chain(model, {{1, true, 1, true}, {0, false, 2}}, 0, true).programs.empty());
  CHECK(!cut_chain(model, {{1, true}, {0}, {1, false, 1, true}, {0}, {0, false, 2}}, 0, true)
             .programs.empty());
  const std::string all = "the head's pieces are not all there, the last on the last stage";
  refused({{1, true}, {1, false, 2, true}}, all);
  refused({{1, true}, {1, false, 4, true}}, all);
  refused({{1, true}, {0, false, 3, true}, {0}}, all);
  refused({{1, true}, {1}}, all);
  refused({{1}, {1, false, 3, true}}, "the embedding is not on the first stage alone");
  refused({{1, true}, {1, true, 3, true}}, "the embedding is not on the first stage alone");
  refused({{1, true, 1, true}, {1, false, 2}}, "a layer is behind a piece of the head");
  const std::string norm = "the last norm is not with the head's first piece alone";
  refused({{1, true, 1}, {0, false, 2}}, norm);
  refused({{1, true, 1, true}, {0, false, 2, true}}, norm);
  refused({{1, true, 0, true}, {0, false, 3, true}}, norm);
  const std::string less = "a stage has less than no layers, or pieces of the head";
  refused({{-1, true}, {0, false, 3, true}}, less);
  refused({{1, true}, {0, false, -3, true}}, less);
  CHECK_THROWS_WITH_AS(stretto::transformer_chain(
                           model, {.ranks = 3, .chunks = 1}, 0,
                           std::vector<transformer_part>{{1, true}, {0, false, 3, true}}, true),
                       "stretto::transformer_chain: there is not a part of every stage",
                       std::invalid_argument);
}

constexpr bool is_constant = [] {
  const transformer model{
      .hidden = 8, .heads = 1, .sequence = 4, .vocabulary = 6, .head_pieces = 3};
  const std::vector<transformer_part> parts{{1, true}, {0, false, 1, true}, {0, false, 2}};
  return stretto::transformer_chain(model, {.ranks = 3, .chunks = 1}, 1, parts, true)
             .programs.size() == 3;
}();
static_assert(is_constant);

}  // namespace
