// Rule 7, spare: no wait of a plan can go, as far as its rank can know, and none can be added.
#include <doctest/doctest.h>

#include <random>
#include <string>

#include "laws/oracle_plans.hpp"
#include "laws/oracle_race.hpp"
#include "laws/grid/plan_grid.hpp"
#include "laws/plan_judged.hpp"
#include "stretto/model/verdict_text.hpp"

using oracle::flaw;
using stretto::wait_reason;

TEST_CASE("without any one wait something is out of order, and it is what the wait is for") {
  long waits = 0, untold = 0;
  laws::for_each_plan(6, 13, 3, 53, [&](const laws::grid_point& point, const auto& made) {
    INFO(point.words());
    REQUIRE(made.answer() == stretto::verdict{});
    oracle::two_steps judge(made.plans());
    for (int rank = 0; rank < point.sizes.ranks; ++rank) {
      const auto& plan = made.plans()[static_cast<std::size_t>(rank)];
      for (int index = 0; index < static_cast<int>(plan.instructions.size()); ++index) {
        const auto here = plan.waits_of(plan.instructions[static_cast<std::size_t>(index)]);
        for (int wait = 0; wait < static_cast<int>(here.size()); ++wait) {
          const auto found = judge.found_without({rank, index, wait});
          const wait_reason why = here[static_cast<std::size_t>(wait)].why;
          INFO("rank ", rank, " instruction ", index, " reason ", static_cast<int>(why), ": ",
               found.words());
          // What a wait for the step's end or the step before orders may touch the same bytes too.
          const bool expected = found.what == flaw::race || found.what == flaw::release ||
                                (why == wait_reason::gate && found.what == flaw::gate) ||
                                (why == wait_reason::bound && found.what == flaw::bound) ||
                                (why == wait_reason::lead &&
                                 (found.what == flaw::lead || found.what == flaw::gate));
          // Only who has heard across other ranks can do without.
          const bool untold_here = found.what == flaw::none && point.told_far;
          REQUIRE((expected || untold_here));
          ++waits;
          untold += untold_here;
        }
      }
    }
  });
  CHECK(waits > 50000);
  CHECK(untold * 500 < waits);
}

TEST_CASE("the judge that leaves a wait out knows what one knows of plans without it") {
  long waits = 0;
  laws::for_each_plan(4, 6, 2, 53, [&](const laws::grid_point& point, const auto& made) {
    INFO(point.words());
    oracle::two_steps judge(made.plans());
    const oracle::loose_plans sound(made.plans());
    for (int rank = 0; rank < point.sizes.ranks; ++rank) {
      const auto& list = sound.ranks[static_cast<std::size_t>(rank)].list;
      for (std::size_t index = 0; index < list.size(); ++index)
        for (std::size_t wait = 0; wait < list[index].waits.size(); ++wait, ++waits) {
          oracle::loose_plans less = sound;
          auto& of = less.ranks[static_cast<std::size_t>(rank)].list[index].waits;
          of.erase(of.begin() + static_cast<std::ptrdiff_t>(wait));
          const auto views = less.views();
          oracle::two_steps other(views);
          const auto expected = other.found();
          const auto found =
              judge.found_without({rank, static_cast<int>(index), static_cast<int>(wait)});
          INFO("rank ", rank, " instruction ", index, " wait ", wait);
          REQUIRE((found.what == flaw::none) == (expected.what == flaw::none));
          REQUIRE(judge.clocks() == other.clocks());
        }
    }
  });
  CHECK(waits > 1000);
}

TEST_CASE("spare refuses every wait that is added") {
  std::minstd_rand random(7);
  long added = 0;
  laws::for_each_plan(5, 7, 3, 7, [&](const laws::grid_point& point, const auto& made) {
    INFO(point.words());
    REQUIRE(made.answer().ok());
    laws::judged rules(made);
    REQUIRE(rules.spare(made.plans()) == stretto::verdict{});
    const oracle::loose_plans sound(made.plans());
    for (int times = 0; times < 40; ++times) {
      oracle::loose_plans more = sound;
      const auto rank = random() % more.ranks.size();
      auto& plan = more.ranks[rank];
      const auto later = random() % plan.list.size();
      const bool previous = random() % 8 == 0;
      const auto earlier = previous || later == 0
                               ? (random() % 2 == 0 ? plan.list.size() - 1
                                                    : random() % plan.list.size())
                               : random() % later;
      auto& recorded = plan.list[earlier].itself;
      if (recorded.record < 0) recorded.record = plan.head.events++;
      const stretto::event_wait wait{recorded.record, static_cast<wait_reason>(random() % 5),
                                     previous || later == 0};
      auto& waits = plan.list[later].waits;
      waits.insert(waits.begin() + static_cast<std::ptrdiff_t>(random() % (waits.size() + 1)),
                   wait);
      const auto views = more.views();
      INFO("rank ", rank, " instruction ", later, " waits for ", earlier, ", reason ",
           static_cast<int>(wait.why));
      ++added;
      if (wait.why == wait_reason::starts_before && !wait.previous_step) {
        // The event is of an end, not of a start.
        REQUIRE(rules.race_free(views).why == stretto::reason::read_before_write);
        continue;
      }
      REQUIRE(rules.race_free(views) == stretto::verdict{});
      const stretto::verdict answer = rules.spare(views);
      REQUIRE(answer.what == stretto::fault::idle_event);
    }
  });
  CHECK(added > 20000);
}
