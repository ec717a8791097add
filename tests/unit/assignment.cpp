#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "stretto/assignment/all.hpp"
#include "stretto/lowering/requested.hpp"
#include "stretto/memory/release_early.hpp"
#include "stretto/model/costs_fit.hpp"
#include "stretto/model/layer.hpp"
#include "stretto/model/verdict_text.hpp"

namespace {

using stretto::fault;
using stretto::placement;
using stretto::placement_kind;
using stretto::reason;
using stretto::assignment::covered;
using stretto::assignment::deal_evenly;
using stretto::assignment::deal_list;
using stretto::assignment::deal_round_robin;
using stretto::assignment::deal_table;
using stretto::assignment::even;
using stretto::assignment::for_model;
using stretto::assignment::layer_range;
using stretto::assignment::rank_list;
using stretto::assignment::round_robin;
using stretto::assignment::sparse_table;
using stretto::assignment::table;

static_assert(stretto::assignment::Policy<even<9>>);
static_assert(stretto::assignment::Policy<round_robin<5, 3>>);
static_assert(stretto::assignment::Policy<rank_list<0, 1>>);
static_assert(stretto::assignment::Policy<table<1, 2>>);
static_assert(stretto::assignment::Policy<sparse_table<1, 0>>);
static_assert(stretto::assignment::Policy<for_model<8, round_robin<5, 3>>>);

// Counts of every stage; empty when the list is refused.
std::vector<int> counts_of(const std::vector<std::int32_t>& list, const placement& where) {
  std::vector<layer_range> stages(static_cast<std::size_t>(where.stages()));
  if (!deal_list(list, where, stages).ok()) return {};
  CHECK(covered(stages, static_cast<int>(list.size()), where).ok());
  std::vector<int> counts;
  for (const layer_range& held : stages) counts.push_back(held.count);
  return counts;
}

std::string words(const stretto::verdict& answer) {
  return std::string(stretto::to_text(answer).view());
}

// The same code at compile time.
constexpr auto dealt = [] {
  std::array<layer_range, 4> stages{};
  if (!round_robin<5, 3>{}.assign({.ranks = 2, .chunks = 2}, stages).ok()) stages = {};
  return stages;
}();
static_assert(dealt == std::array<layer_range, 4>{{{0, 3}, {3, 2}, {5, 2}, {7, 1}}});
static_assert([] {
  std::array<layer_range, 4> stages{};
  return rank_list<0, 0, 0, 0, 0, 1, 1, 1>{}.assign({.ranks = 2, .chunks = 2}, stages).ok() &&
         stages == dealt;
}());

TEST_CASE("what layers take goes into a job table; what is below 0 is not hidden by others") {
  const placement where{.ranks = 2, .microbatches = 4};
  const std::vector<layer_range> stages{{0, 2}, {2, 1}};
  const auto written = [&](const stretto::unit_costs& odd) {
    stretto::job_table made(2, 1);
    stretto::write_layer_costs(
        where, stages, [&](int layer) { return layer == 1 ? odd : stretto::unit_costs{}; }, made);
    return made;
  };
  const stretto::job_table made = written({.forward = 5, .memory_weights = 7});
  CHECK(made.view().at(0, 0, stretto::job_kind::forward).time == 6);
  CHECK(made.base == std::vector<std::int64_t>{7, 0});
  CHECK(stretto::costs_fit(made.view(), where, 4, 1).ok());
  using costs = stretto::unit_costs;
  for (const auto member : {&costs::forward, &costs::backward_input, &costs::backward_weight,
                            &costs::offload, &costs::memory_weights}) {
    costs odd{.memory_weights = 9};
    odd.*member = -1;
    const stretto::job_table odd_one = written(odd);
    CHECK_FALSE(stretto::costs_fit(odd_one.view(), where, 4, 1).ok());
  }
}

namespace {

struct odd_layer : stretto::memory::release_early {
  std::int64_t stretto::layer_bytes::*member = nullptr;

  constexpr stretto::layer_bytes layer_bytes(int layer) const {
    stretto::layer_bytes made{.stash = 4096, .gradients = 4096, .kept = 4096, .left = 4096};
    if (layer == 1) made.*member = -64;
    return made;
  }
};

}  // namespace

TEST_CASE("bytes of a layer that are below 0 are refused, whatever its stage's other layers have") {
  const std::vector<layer_range> layers{{0, 1}, {1, 2}};
  using bytes = stretto::layer_bytes;
  for (const auto& [member, why] : {std::pair{&bytes::stash, reason::stash_out_of_range},
                                    {&bytes::gradients, reason::gradients_out_of_range},
                                    {&bytes::kept, reason::kept_out_of_range},
                                    {&bytes::left, reason::left_out_of_range}}) {
    odd_layer policy;
    policy.member = member;
    std::vector<stretto::stage_bytes> stages(2);
    stretto::memory::write_stage_bytes(policy, layers, stages);
    const stretto::verdict found = stretto::lowering::requested(stages, 2, false, {}, {}, 2);
    CHECK(found.why == why);
    CHECK(found.where.stage == 1);
    CHECK(found.amount == -64);
  }
}

TEST_CASE("round robin deals as Paddle does, and refuses what Paddle refuses") {
  std::ifstream file(STRETTO_GOLDEN_DIR "/uneven_layers.txt");
  REQUIRE(file.good());
  std::string line;
  int entries = 0;
  while (std::getline(file, line)) {
    if (line.empty() || line.front() == '#') continue;
    INFO(line);
    std::istringstream words(line);
    placement where;
    char bar = 0;
    words >> where.ranks >> where.chunks >> bar;
    std::vector<std::int32_t> per_rank(static_cast<std::size_t>(where.ranks));
    for (auto& count : per_rank) words >> count;
    words >> bar;
    REQUIRE(words.good());
    std::vector<layer_range> stages(static_cast<std::size_t>(where.stages()));
    const auto answer = deal_round_robin(per_rank, where, stages);
    ++entries;
    if (line.find("refused") != std::string::npos) {
      CHECK(answer.what == fault::misassigned);
      CHECK(answer.why == reason::empty_stage);
      REQUIRE(answer.rank >= 0);
      CHECK(per_rank[static_cast<std::size_t>(answer.rank)] < where.chunks);
      continue;
    }
    REQUIRE(answer.ok());
    // The same from a list of ranks that never goes back.
    std::vector<std::int32_t> list;
    for (std::size_t rank = 0; rank < per_rank.size(); ++rank)
      list.insert(list.end(), static_cast<std::size_t>(per_rank[rank]),
                  static_cast<std::int32_t>(rank));
    std::vector<layer_range> listed(stages.size());
    REQUIRE(deal_list(list, where, listed).ok());
    CHECK(listed == stages);
    // The list of where they then lie says the same once more, as it is.
    for (int stage = 0; stage < where.stages(); ++stage) {
      const layer_range held = stages[static_cast<std::size_t>(stage)];
      for (std::int32_t layer = held.first; layer < held.first + held.count; ++layer)
        list[static_cast<std::size_t>(layer)] = where.rank_of(stage, 0);
    }
    REQUIRE(deal_list(list, where, listed).ok());
    CHECK(listed == stages);
    std::int32_t first = 0;
    for (int stage = 0; stage < where.stages(); ++stage) {
      int rank = -1;
      int chunk = -1;
      layer_range expected{first, 0};
      words >> rank >> chunk >> expected.count;
      REQUIRE(!words.fail());
      CHECK(where.rank_of(stage, 0) == rank);
      CHECK(where.chunk_of(stage, 0) == chunk);
      CHECK(stages[static_cast<std::size_t>(stage)] == expected);
      first += expected.count;
    }
  }
  CHECK(entries == 30);
}

TEST_CASE("every policy covers the model in order, without gaps, every rank with its share") {
  const std::int32_t table[] = {0, 1, 1, 2, 0, 2, 0};
  for (const placement& where :
       {placement{placement_kind::looped, 4, 3}, placement{placement_kind::wave, 4, 3},
        placement{placement_kind::wave, 1, 1},
        placement{placement_kind::table, 3, 3, 1, table, 7}}) {
    std::vector<layer_range> stages(static_cast<std::size_t>(where.stages()));
    std::vector<std::int32_t> per_rank;
    for (int rank = 0; rank < where.ranks; ++rank) per_rank.push_back(3 + 2 * rank);
    std::vector<std::int32_t> held(per_rank.size());
    REQUIRE(deal_round_robin(per_rank, where, stages).ok());
    std::int32_t next = 0;
    for (int stage = 0; stage < where.stages(); ++stage) {
      const auto& range = stages[static_cast<std::size_t>(stage)];
      CHECK(range.first == next);
      CHECK(range.count >= 1);
      next += range.count;
      held[static_cast<std::size_t>(where.rank_of(stage, 0))] += range.count;
    }
    CHECK(held == per_rank);

    for (int layers = where.stages(); layers < 3 * where.stages(); ++layers) {
      REQUIRE(deal_evenly(layers, where, stages).ok());
      next = 0;
      for (const auto& range : stages) {
        CHECK(range.first == next);
        CHECK(range.count >= layers / where.stages());
        CHECK(range.count <= (layers + where.stages() - 1) / where.stages());
        next += range.count;
      }
      CHECK(next == layers);
    }
  }
}

TEST_CASE("what cannot be dealt is refused, with the rank if there is one at fault") {
  const placement where{placement_kind::looped, 2, 2};
  std::array<layer_range, 4> stages;
  const auto check = [](const stretto::verdict& answer, fault what, reason why, int rank) {
    CHECK(answer.what == what);
    CHECK(answer.why == why);
    CHECK(answer.rank == rank);
  };
  check(even<3>{}.assign(where, stages), fault::misassigned, reason::empty_stage, -1);
  check(even<-3>{}.assign(where, stages), fault::misassigned, reason::empty_stage, -1);
  // The model's layers and stages: no rank's.
  CHECK(to_text(even<3>{}.assign(where, stages)) ==
        "misassigned: a stage would hold no layer (layers: 3, at least 4)");
  check(round_robin<4, 1>{}.assign(where, stages), fault::misassigned, reason::empty_stage, 1);
  check(round_robin<4, -1>{}.assign(where, stages), fault::misassigned, reason::empty_stage, 1);
  check(round_robin<4, 4, 4>{}.assign(where, stages), fault::misassigned,
        reason::counts_not_per_rank, -1);
  check(round_robin<4, 4>{}.assign({placement_kind::bidirectional, 2, 2}, stages),
        fault::misassigned, reason::not_dealt_both_ways, -1);
  check(round_robin<4, 4>{}.assign(where, std::span(stages).first(3)), fault::capacity,
        reason::buffer_full, -1);
  check(even<8>{}.assign(where, std::span(stages).first(3)), fault::capacity, reason::buffer_full,
        -1);
}

TEST_CASE("a list of ranks that goes back is taken as it is, or refused by its layers") {
  const placement looped{placement_kind::looped, 2, 2};
  // Paddle leaves layers 4 and 6 of the first one on the other device.
  CHECK(counts_of({0, 0, 1, 1, 1, 0, 0, 1}, looped) == std::vector{2, 3, 2, 1});
  CHECK(counts_of({0, 1, 0, 1}, looped) == std::vector{1, 1, 1, 1});
  CHECK(counts_of({0, 1, 0, 1, 1, 1}, looped) == std::vector{1, 1, 1, 3});
  // The turn of a wave is shared: layers 1 to 3 are two stages of rank 1.
  const placement wave{placement_kind::wave, 2, 2};
  CHECK(counts_of({0, 1, 1, 1, 0}, wave) == std::vector{1, 2, 1, 1});
  CHECK(counts_of({0, 0, 1, 1, 1}, wave) == std::vector{1, 2, 1, 1});
  CHECK(counts_of({0, 0, 0, 1}, {placement_kind::bidirectional, 2, 2}) == std::vector{3, 1});
  // Of two directions the list is the first one's, a wave.
  CHECK(counts_of({0, 0, 0, 1, 1}, {placement_kind::bidirectional, 2, 4}) ==
        std::vector{2, 1, 1, 1});
  CHECK(counts_of({0, 1, 1, 1, 0}, {placement_kind::bidirectional, 2, 4}) ==
        std::vector{1, 2, 1, 1});
  const std::int32_t anywhere[] = {1, 0, 0, 1};
  CHECK(counts_of({1, 0, 0, 0, 1, 1}, {placement_kind::table, 2, 2, 1, anywhere, 4}) ==
        std::vector{1, 2, 1, 2});

  std::vector<layer_range> stages(4);
  const auto refused = [&](const std::vector<std::int32_t>& list, const placement& where) {
    CHECK(counts_of(list, where).empty());
    return words(deal_list(list, where, stages));
  };
  CHECK(refused({0, 1, 0, 0, 1, 0}, looped) ==
        "misassigned on rank 1: the layer is not where the rank's share of layers lies (layer 1,"
        " must be on rank 0)");
  std::vector<std::int64_t> wrong;
  const std::vector<std::int32_t> list{0, 1, 0, 0, 1, 0};
  for (auto found = stretto::assignment::first_misplaced(list, looped, stages); !found.ok();
       found = stretto::assignment::first_misplaced(list, looped, stages,
                                                    static_cast<int>(found.amount) + 1))
    wrong.push_back(found.amount);
  CHECK(wrong == std::vector<std::int64_t>{1, 2, 4, 5});
  CHECK(refused({1, 0, 1, 0}, looped).find("layer 0, must be on rank 0") != std::string::npos);
  CHECK(refused({0, 0, 1, 1}, {placement_kind::bidirectional, 3, 2}).find("rank 2") !=
        std::string::npos);
  CHECK(refused({0, 1, 0, 2}, looped) ==
        "misassigned on rank 2: there is no such rank (layer 3, at most rank 1)");
  CHECK(refused({0, -1}, looped).find("on rank") == std::string::npos);
  CHECK(refused({0, 1, 0}, looped) ==
        "misassigned on rank 1: a stage would hold no layer (layers: 1, at least 2)");
  CHECK(refused({}, looped).find("layers: 0, at least 2") != std::string::npos);
}

TEST_CASE("every list over a small grid is refused or lies where it says") {
  for (const placement& where :
       {placement{placement_kind::looped, 2, 2}, placement{placement_kind::wave, 2, 2},
        placement{placement_kind::wave, 2, 3}, placement{placement_kind::looped, 3, 1}})
    for (int layers = 1; layers <= 7; ++layers) {
      std::vector<std::int32_t> list(static_cast<std::size_t>(layers));
      std::vector<layer_range> stages(static_cast<std::size_t>(where.stages()));
      bool more = true;
      while (more) {
        const bool rising = std::is_sorted(list.begin(), list.end());
        if (deal_list(list, where, stages).ok()) {
          REQUIRE(covered(stages, layers, where).ok());
          std::vector<int> named(3), held(3);
          for (const auto rank : list) ++named[static_cast<std::size_t>(rank)];
          for (int stage = 0; stage < where.stages(); ++stage)
            held[static_cast<std::size_t>(where.rank_of(stage, 0))] +=
                stages[static_cast<std::size_t>(stage)].count;
          REQUIRE(named == held);
          if (!rising)
            REQUIRE(stretto::assignment::first_misplaced(list, where, stages).ok());
        } else if (const auto found = deal_list(list, where, stages);
                   found.why == reason::layer_misplaced) {
          REQUIRE(list[static_cast<std::size_t>(found.amount)] == found.rank);
          REQUIRE(found.limit != found.rank);
        }
        more = false;
        for (auto& rank : list) {
          rank = (rank + 1) % where.ranks;
          if (rank != 0) {
            more = true;
            break;
          }
        }
      }
    }
}

TEST_CASE("tables say what every stage holds") {
  const placement where{placement_kind::looped, 2, 2};
  std::array<layer_range, 4> stages{};
  REQUIRE(table<3, 2, 2, 1>{}.assign(where, stages).ok());
  CHECK(stages == dealt);
  CHECK(words(table<3, 0, 2, 1>{}.assign(where, stages)) ==
        "misassigned on rank 1: a stage would hold no layer (layers: 0, at least 1)");
  CHECK(words(table<3, 2, 2>{}.assign(where, stages)) ==
        "misassigned: each stage needs one layer count (counts: 3, must be 4)");
  REQUIRE(sparse_table<3, 0, 2, 1>{}.assign(where, stages).ok());
  CHECK(covered(stages, 6, where, true).ok());
  CHECK(words(covered(stages, 6, where)) ==
        "misassigned on rank 1: a stage would hold no layer (layers: 0, at least 1)");
  CHECK(sparse_table<3, -1, 2, 1>{}.assign(where, stages).why == reason::empty_stage);
  CHECK(words(round_robin<5, 3, 1>{}.assign(where, stages)) ==
        "misassigned: each rank needs one layer count (counts: 3, must be 2)");
  CHECK(words(for_model<9, round_robin<5, 3>>{}.assign(where, stages)) ==
        "misassigned: the layers do not sum to the model (layers: 8, must be 9)");
  const std::int32_t huge[] = {2147483647, 1, 1, 1};
  CHECK(deal_table(huge, where, stages).why == reason::layers_do_not_fit);
  const std::int32_t large[] = {2147483647, 2147483647};
  CHECK(deal_round_robin(large, where, stages).why == reason::layers_do_not_fit);
}

TEST_CASE("each layer on exactly one stage: what breaks that is named") {
  const placement where{placement_kind::looped, 2, 2};
  const auto found = [&](std::vector<layer_range> stages, int layers = 8) {
    return words(covered(stages, layers, where));
  };
  CHECK(found({{0, 3}, {3, 2}, {5, 2}, {7, 1}}) == "ok");
  CHECK(found({{0, 3}, {3, 2}, {6, 1}, {7, 1}}) ==
        "misassigned on rank 0: a layer lies on no stage (layer 5 of 8)");
  CHECK(found({{0, 3}, {2, 3}, {5, 2}, {7, 1}}) ==
        "misassigned on rank 1: a layer lies on two stages, or before its turn (layer 2 of 8)");
  CHECK(found({{3, 2}, {0, 3}, {5, 2}, {7, 1}}).find("layer 0 of 8") != std::string::npos);
  CHECK(found({{0, 3}, {3, 2}, {5, 2}, {7, 2}}) ==
        "misassigned: the layers do not sum to the model (layers: 9, must be 8)");
  CHECK(found({{0, 3}, {3, 2}, {5, 3}, {8, 0}}).find("on rank 1: a stage") != std::string::npos);
  CHECK(found({{0, 3}, {3, 5}}).find("counts: 2, must be 4") != std::string::npos);
}

}  // namespace
