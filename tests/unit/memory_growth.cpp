#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/schedule/gpipe.hpp"
#include "stretto/schedule/inference.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

namespace {

constexpr int ranks = 8;
constexpr std::int64_t message = std::int64_t{16} << 20;

template <class Schedule = stretto::schedule::one_f_one_b>
std::vector<std::int64_t> arenas(int microbatches, bool release_sends) {
  stretto::plan_request request;
  request.stages = {{.output = message, .stash = 1000}};
  request.release_sends = release_sends;
  const stretto::job_table table(ranks, 1);
  const stretto::planned made(Schedule{}, {.ranks = ranks, .microbatches = microbatches},
                              table.view(), stretto::overlap::separate{}, request);
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

TEST_CASE("nor does that of a forward-only step, though nothing comes back") {
  const auto few = arenas<stretto::schedule::inference>(4, true);
  CHECK(arenas<stretto::schedule::inference>(64, true) == few);
  CHECK(arenas<stretto::schedule::inference>(768, true) == few);
}

TEST_CASE("fill-drain grows by what backwards need: a stash, and the input that it came from") {
  const auto few = arenas<stretto::schedule::gpipe>(64, true);
  const auto more = arenas<stretto::schedule::gpipe>(65, true);
  for (std::size_t rank = 0; rank < ranks; ++rank)
    CHECK(more[rank] - few[rank] == 1024 + (rank > 0) * message);
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
