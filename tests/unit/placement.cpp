// Where stages lie: each on one rank, or in two directions on two, whichever way one asks.
#include "stretto/model/placement.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

namespace {

using stretto::place;
using stretto::placement;
using stretto::placement_kind;
using stretto::reason;

}  // namespace

TEST_CASE("ranks and chunks find the stages that find them") {
  for (const placement_kind kind :
       {placement_kind::looped, placement_kind::wave, placement_kind::bidirectional})
    for (int ranks = 1; ranks <= 6; ++ranks)
      for (int chunks = 1; chunks <= 4; ++chunks) {
        const placement where = place(kind, {.ranks = ranks, .microbatches = 5, .chunks = chunks});
        const int ways = kind == placement_kind::bidirectional ? 2 : 1;
        CAPTURE(static_cast<int>(kind));
        CAPTURE(ranks);
        CAPTURE(chunks);
        REQUIRE(where.sound());
        CHECK(where.stages() == ranks * chunks);
        CHECK(where.chunks == ways * chunks);
        CHECK(where.chunks_one_way() == chunks);
        for (int microbatch = 0; microbatch < 5; ++microbatch) {
          const int way = where.direction(microbatch);
          CHECK(way == (ways == 2 && microbatch >= 3 ? 1 : 0));
          std::vector<int> seen(static_cast<std::size_t>(ranks * where.chunks));
          for (int stage = 0; stage < where.stages(); ++stage) {
            const int rank = where.rank_of(stage, microbatch);
            const int chunk = where.chunk_of(stage, microbatch);
            CHECK(chunk / chunks == way);
            CHECK(where.stage_of(rank, chunk) == stage);
            CHECK(rank ==
                  (way == 0 ? where.rank_of(stage, 0) : ranks - 1 - where.rank_of(stage, 0)));
            CHECK(where.rank_in(way, stage) == rank);
            CHECK(where.stage_of(rank, where.chunk_on(rank, stage)) == stage);
            CHECK(++seen[static_cast<std::size_t>(rank * where.chunks + chunk)] == 1);
            if (stage + 1 < where.stages())
              CHECK(where.stays(rank, chunk, stage + 1) ==
                    (where.rank_of(stage + 1, microbatch) == rank));
            if (stage > 0)
              CHECK(where.stays(rank, chunk, stage - 1) ==
                    (where.rank_of(stage - 1, microbatch) == rank));
          }
          CHECK(!where.stays(0, 0, -1));
          CHECK(!where.stays(0, 0, where.stages()));
        }
      }
}

TEST_CASE("of more chunks than a step can have the placement is made all the same") {
  constexpr int most = std::numeric_limits<int>::max();
  for (const int chunks : {most, most / 2 + 1, (1 << 24) + 1, std::numeric_limits<int>::min()})
    CHECK(place(placement_kind::bidirectional, {.ranks = 2, .chunks = chunks}).chunks == chunks);
  CHECK(place(placement_kind::bidirectional, {.ranks = 2, .chunks = 1 << 24}).chunks == 1 << 25);
}

TEST_CASE("a stage of the second direction is found, also where no micro-batch goes that way") {
  const placement where = place(placement_kind::bidirectional, {.ranks = 4});
  CHECK(where.direction(0) == 0);
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(where.chunk_on(rank, rank) == 0);
    CHECK(where.chunk_on(rank, 3 - rank) == 1);
  }
}

TEST_CASE("more stages than a step can have, or none, are no placement") {
  constexpr int most = std::numeric_limits<int>::max();
  for (const placement_kind kind :
       {placement_kind::looped, placement_kind::wave, placement_kind::bidirectional}) {
    CHECK(placement{kind, 2, most - 1, 2}.flaw() == reason::shape_too_large);
    CHECK(placement{kind, most, 2, 2}.flaw() == reason::shape_too_large);
    CHECK(placement{kind, 0, 2, 2}.flaw() == reason::ranks_below_one);
    CHECK(placement{kind, 2, 0, 2}.flaw() == reason::chunks_below_one);
    CHECK(placement{kind, 1 << 12, 1 << 12, 2}.sound());
  }
}

TEST_CASE("directions with unlike numbers of chunks are no placement") {
  for (const int chunks : {1, 3})
    CHECK(placement{placement_kind::bidirectional, 2, chunks, 2}.flaw() ==
          reason::directions_unlike);
  CHECK(placement{placement_kind::bidirectional, 2, 4, 2}.sound());
}

TEST_CASE("the middle rank of an odd number has its stages in both directions") {
  const placement where =
      place(placement_kind::bidirectional, {.ranks = 3, .microbatches = 2, .chunks = 2});
  for (int rank = 0; rank < 3; ++rank) CHECK(where.is_midst(rank) == (rank == 1));
  CHECK(where.stage_of(1, 0) == where.stage_of(1, 2));
  CHECK(where.stage_of(1, 1) == where.stage_of(1, 3));
  CHECK(where.chunk_on(1, where.stage_of(1, 3)) == 1);
  CHECK(where.chunk_on(0, 3) == 3);   // of direction 1 alone
  CHECK(where.chunk_on(0, 1) == -1);  // of neither
}
