// DualPipe and DualPipeV against figures of their authors' orders, with and without pairs as nodes.
#include <doctest/doctest.h>

#include "figures.hpp"

TEST_CASE("makespans and peaks of DualPipe and DualPipeV, their pairs apart and as nodes") {
  int compared = 0;
  for (golden::figure theirs : golden::read_figures(STRETTO_GOLDEN_DIR "/dualpipe_figures.txt")) {
    INFO(theirs.text);
    CHECK(golden::with_schedule(theirs, [&](const auto& schedule) {
      const golden::outcome apart = golden::run(schedule, theirs, false);
      REQUIRE(apart.answer == stretto::verdict{});
      CHECK(apart.makespan == theirs.apart);
      CHECK(apart.peak == theirs.apart_peak);
      const golden::outcome together = golden::run(schedule, theirs);
      REQUIRE(together.answer == stretto::verdict{});
      CHECK(together.makespan == theirs.makespan);
      CHECK(together.bound.flush <= apart.makespan);
      // The more a pair hides the shorter the step, never below the bound for such pairs.
      std::int64_t before = together.makespan;
      for (int hides : {50, 100}) {
        theirs.table.pair_hides = hides;
        const golden::outcome hidden = golden::run(schedule, theirs);
        CHECK(hidden.bound.flush <= hidden.makespan);
        CHECK(hidden.makespan <= before);
        before = hidden.makespan;
      }
      CHECK(before < together.makespan);
    }));
    ++compared;
  }
  CHECK(compared == 132);
}
