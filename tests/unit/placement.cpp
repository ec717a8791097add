// Where stages lie: each on one rank, or in two directions on two, whichever way one asks.
#include <doctest/doctest.h>

#include <vector>

#include "stretto/model/placement.hpp"

namespace {

using stretto::place;
using stretto::placement;
using stretto::placement_kind;

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

TEST_CASE("directions with unlike numbers of chunks are no placement") {
  for (const int chunks : {-2, 0, 1, 3})
    CHECK(!placement{placement_kind::bidirectional, 2, chunks, 2}.sound());
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
