// What `planned` makes has no race, no early start and no early end, whatever the schedule, the
// shape, the streams and the groups, and whether a message is buffered or its halves meet: two
// steps written out, by a judge that shares nothing with the rules.
#include <doctest/doctest.h>

#include "laws/oracle_race.hpp"
#include "laws/plan_grid.hpp"

TEST_CASE("every plan is free of races over two steps, with rendezvous and with buffers") {
  long plans = 0;
  laws::for_each_plan(6, 13, 3, 1, [&](const laws::grid_point& point, const auto& made) {
    INFO(point.words());
    REQUIRE(made.answer() == stretto::verdict{});
    for (auto how : {oracle::carried::rendezvous, oracle::carried::buffered}) {
      const oracle::finding found = oracle::two_steps(made.plans(), how).found();
      INFO(found.words());
      REQUIRE(found.what == oracle::flaw::none);
    }
    ++plans;
  });
  CHECK(plans == 9360);
}
