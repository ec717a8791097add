// What is told of the times of a step: by one clock, or by several that have nothing in common.
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "pipeline/timeline.hpp"
#include "train/pipeline_support.hpp"

using namespace pipeline_test;
using namespace train;

TEST_CASE("how long a rank is idle is its own, whatever the clocks of others say") {
  pipeline made(tiny(4, false), text(),
                {.schedule = "1f1b", .ranks = 2, .microbatches = 3, .trace_steps = 2}, learning());
  for (int step = 0; step < 3; ++step) made.step();
  std::vector<stretto::executor::trace_record> trace = made.trace();
  const auto one = measured(made, trace), own = measured(made, trace, false);
  REQUIRE(one);
  REQUIRE(own);
  constexpr std::int64_t day = 86'400'000'000'000;
  for (auto& each : trace)
    if (each.rank == 1) {
      each.start += day;
      each.end += day;
    }
  const auto apart = measured(made, trace, false), mixed = measured(made, trace);
  REQUIRE(apart);
  REQUIRE(mixed);
  CHECK(apart->idle == own->idle);
  CHECK(apart->picture.bars.empty());
  CHECK_FALSE(one->picture.bars.empty());
  for (const double idle : own->idle) {
    CHECK(idle > 0);
    CHECK(idle < 1);
  }
  // The way of the last step is in its picture, and of all that is told.
  CHECK(one->picture.path.size() > 6);
  CHECK(one->picture.path.front().when.start >= 0);
  CHECK(one->picture.path.back().when.end == one->picture.end);
  CHECK(one->critical.jobs > 0);
  CHECK(one->critical.sum() >= one->picture.end);
  CHECK(own->critical == stretto::path_shares{});
  CHECK(mixed->critical.messages > day / 2);
  // As if by one clock, a step would have taken that day.
  for (const double idle : mixed->idle) CHECK(idle > 0.99);
}

TEST_CASE("a job on the critical path has all of its ops, whatever stands between them") {
  pipeline made(tiny(4, false), text(),
                {.schedule = "paired_1f1b",
                 .ranks = 2,
                 .microbatches = 4,
                 .ops = "input_gradient_first",
                 .trace_steps = 1},
                learning());
  made.step();
  const auto one = measured(made, made.trace());
  REQUIRE(one);
  bool several = false;
  for (const stretto::picture_bar& on : one->picture.path) {
    int bars = 0;
    for (const stretto::picture_bar& each : one->picture.bars) {
      stretto::job work = on.what;
      work.paired = each.what.paired;  // ops say nothing of it
      if (!(each.what == work)) continue;
      ++bars;
      CHECK(each.when.start >= on.when.start);
      CHECK(each.when.end <= on.when.end);
    }
    CHECK(bars > 0);
    several = several || bars > 1;
  }
  CHECK(several);
}
