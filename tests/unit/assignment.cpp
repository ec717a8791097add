#include <doctest/doctest.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "stretto/assignment/all.hpp"

namespace {

using stretto::fault;
using stretto::placement;
using stretto::placement_kind;
using stretto::reason;
using stretto::assignment::deal_evenly;
using stretto::assignment::deal_round_robin;
using stretto::assignment::even;
using stretto::assignment::layer_range;
using stretto::assignment::round_robin;

static_assert(stretto::assignment::Policy<even<9>>);
static_assert(stretto::assignment::Policy<round_robin<5, 3>>);

// The same code at compile time.
constexpr auto dealt = [] {
  std::array<layer_range, 4> stages{};
  if (!round_robin<5, 3>{}.assign({.ranks = 2, .chunks = 2}, stages).ok()) stages = {};
  return stages;
}();
static_assert(dealt == std::array<layer_range, 4>{{{0, 3}, {3, 2}, {5, 2}, {7, 1}}});

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

TEST_CASE("what cannot be dealt is refused, with the rank") {
  const placement where{placement_kind::looped, 2, 2};
  std::array<layer_range, 4> stages;
  const auto check = [](const stretto::verdict& answer, fault what, reason why, int rank) {
    CHECK(answer.what == what);
    CHECK(answer.why == why);
    CHECK(answer.rank == rank);
  };
  check(even<3>{}.assign(where, stages), fault::misassigned, reason::empty_stage, 1);
  check(even<-3>{}.assign(where, stages), fault::misassigned, reason::empty_stage, 0);
  check(round_robin<4, 1>{}.assign(where, stages), fault::misassigned, reason::empty_stage, 1);
  check(round_robin<4, -1>{}.assign(where, stages), fault::misassigned, reason::empty_stage, 1);
  check(round_robin<4, 4, 4>{}.assign(where, stages), fault::misassigned, reason::layers_do_not_fit,
        -1);
  check(round_robin<4, 4>{}.assign({placement_kind::bidirectional, 2, 2}, stages),
        fault::misassigned, reason::placement_not_served, -1);
  check(round_robin<4, 4>{}.assign(where, std::span(stages).first(3)), fault::capacity,
        reason::buffer_full, -1);
  check(even<8>{}.assign(where, std::span(stages).first(3)), fault::capacity, reason::buffer_full,
        -1);
}

}  // namespace
