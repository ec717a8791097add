// What `planned` makes has no race, no early start and no early end, whatever the schedule, the
// shape, the streams and the groups, and whether a message is buffered or its halves meet: two
// steps written out, by a judge that shares nothing with the rules.
#include <doctest/doctest.h>

#include <map>
#include <string>

#include "laws/grid/plan_grid.hpp"
#include "laws/oracle_race.hpp"
#include "support/schedules.hpp"

TEST_CASE("every plan is free of races over two steps, with rendezvous and with buffers") {
  std::map<std::string, long> plans;
  laws::for_each_plan(6, 13, 3, 5, [&](const laws::grid_point& point, const auto& made) {
    INFO(point.words());
    REQUIRE(made.answer() == stretto::verdict{});
    for (auto how : {oracle::carried::rendezvous, oracle::carried::buffered}) {
      const oracle::finding found = oracle::two_steps(made.plans(), how).found();
      INFO(found.words());
      REQUIRE(found.what == oracle::flaw::none);
    }
    ++plans[point.schedule];
  });
  // A fifth of 24 options, another for every shape; 39 shapes at the least of every schedule: one
  // chunk, an even number of ranks, any micro-batches.
  CHECK(plans.size() == support::schedules().size());
  for (const auto& [schedule, count] : plans) {
    INFO(schedule);
    CHECK(count >= 39 * 24 / 5);
  }
}
