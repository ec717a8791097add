#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

namespace {

constexpr int ranks = 8;
constexpr std::int64_t message = std::int64_t{16} << 20;

std::vector<std::int64_t> arenas(int microbatches, bool release_sends) {
  stretto::plan_request request;
  request.stages = {{.output = message, .stash = 1000}};
  request.release_sends = release_sends;
  const stretto::job_table table(ranks, 1);
  const stretto::planned made(stretto::schedule::one_f_one_b{},
                              {.ranks = ranks, .microbatches = microbatches}, table.view(),
                              stretto::overlap::separate{}, request);
  REQUIRE(made.answer().ok());
  std::vector<std::int64_t> bytes;
  for (const auto& plan : made.plans()) bytes.push_back(plan.arena_bytes);
  return bytes;
}

TEST_CASE("the arena of 1F1B does not grow with the micro-batches, to the byte") {
  const auto few = arenas(2 * ranks, true);
  CHECK(arenas(64, true) == few);
  CHECK(arenas(768, true) == few);
}

TEST_CASE("sends held to the end cost one message for each of them") {
  const auto few = arenas(64, false);
  const auto more = arenas(65, false);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const int sends = (rank > 0) + (rank + 1 < ranks);
    CHECK(more[rank] - few[rank] == sends * message);
  }
}

}  // namespace
