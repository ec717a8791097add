// What the searches find, beside the closed forms that they know.
#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>

#include "stretto/check/all.hpp"
#include "stretto/plan/emit_jobs.hpp"
#include "stretto/schedule/all.hpp"
#include "stretto/schedule/parts/wave_fill_drain.hpp"
#include "support/measured_order.hpp"

namespace {

using stretto::shape;
using stretto::schedule::objective_kind;
using support::measure_order;

//! Whether the search finds nothing worse than the closed form under the limit that the form needs,
//! by either objective.
template <class Search, class Form>
void not_longer(const shape& sizes, stretto::job_table table) {
  const auto theirs = measure_order(Form{}, sizes, table.view());
  REQUIRE(theirs.fits);
  table.limit.assign(static_cast<std::size_t>(sizes.ranks), theirs.peak);
  INFO(std::string(Search::name), " and ", std::string(Form::name), ", p ", sizes.ranks, ", m ",
       sizes.microbatches, ", limit ", theirs.peak);
  for (const auto objective : {objective_kind::flush, objective_kind::span}) {
    const auto ours = measure_order(Search{.objective = objective}, sizes, table.view());
    REQUIRE(ours.fits);
    if (objective == objective_kind::flush)
      CHECK(ours.makespan <= theirs.makespan);
    else
      CHECK(ours.span <= theirs.span);
  }
}

}  // namespace

TEST_CASE("no search is longer than a closed form that it knows, within the memory of that") {
  using namespace stretto::schedule;
  std::mt19937 random(1);
  const auto up_to = [&](unsigned most) { return static_cast<int>(random() % most) + 1; };
  for (int round = 0; round < 20; ++round) {
    const shape sizes{.ranks = up_to(8), .microbatches = up_to(24), .chunks = 2};
    stretto::job_table table(sizes.ranks, 2, {up_to(20), up_to(20), up_to(20), up_to(4) - 1});
    if (round % 3 == 0)  // whole backwards that take less than their halves
      for (int rank = 0; rank < sizes.ranks; ++rank)
        for (int chunk = 0; chunk < 2; ++chunk)
          table.at(rank, chunk, stretto::job_kind::backward).time -=
              table.at(rank, chunk, stretto::job_kind::backward_weight).time / 2;
    not_longer<zbv_greedy, zbv>(sizes, table);
    not_longer<v_auto, zbv>(sizes, table);
    not_longer<v_auto, v_half>(sizes, table);
    not_longer<v_auto, v_min>(sizes, table);
    not_longer<v_auto, v_1f1b>(sizes, table);
    not_longer<v_auto, hanayo>(sizes, table);
  }
}

TEST_CASE("V-Half and V-Min are no longer than the published orders, also where no job is a slot") {
  using namespace stretto::schedule;
  // Makespans of the orders that the reordering of slots after Qi et al. gives (the same for all
  // costs), which keep as much.
  const auto no_longer = [](const auto& form, int ranks, int microbatches,
                            const stretto::unit_costs& costs, std::int64_t published) {
    const shape sizes{.ranks = ranks, .microbatches = microbatches, .chunks = 2};
    CAPTURE(form.name);
    CAPTURE(ranks);
    CAPTURE(microbatches);
    const stretto::job_table table(ranks, 2, costs);
    const auto made = measure_order(form, sizes, table.view());
    REQUIRE(made.fits);
    CHECK(made.makespan <= published);
  };
  no_longer(v_half{}, 8, 8, {28, 33, 111, 1}, 3320);
  no_longer(v_half{}, 10, 20, {48, 24, 115, 20}, 9360);
  no_longer(v_half{}, 3, 28, {10, 12, 8, 1}, 1760);
  no_longer(v_half{}, 5, 22, {9, 7, 10, 2}, 1288);
  no_longer(v_half{}, 7, 2, {10, 12, 8, 1}, 388);
  no_longer(v_half{}, 10, 24, {5, 5, 5, 1}, 897);
  no_longer(v_min{}, 5, 29, {84, 70, 95, 0}, 15715);
  no_longer(v_min{}, 8, 16, {3, 2, 12, 3}, 778);
  no_longer(v_min{}, 9, 12, {113, 92, 115, 1}, 10974);
  no_longer(v_min{}, 6, 6, {62, 21, 98, 0}, 2912);
  no_longer(v_min{}, 3, 1, {79, 31, 117, 0}, 832);
}

TEST_CASE("under tight limits the adaptive V keeps up with the best order that its authors' sees") {
  using namespace stretto::schedule;
  // Makespans, for the costs told, of the best of all orders that the search of Qi et al. looks at
  // within the limit; they end otherwise than blocks close up.
  const auto no_longer = [](int ranks, int microbatches, std::int64_t limit,
                            const stretto::unit_costs& costs, std::int64_t published) {
    const shape sizes{.ranks = ranks, .microbatches = microbatches, .chunks = 2};
    CAPTURE(ranks);
    CAPTURE(microbatches);
    stretto::job_table table(ranks, 2, costs);
    table.limit.assign(static_cast<std::size_t>(ranks), limit);
    const auto made = measure_order(v_auto{}, sizes, table.view());
    REQUIRE(made.fits);
    CHECK(made.makespan <= published);
  };
  no_longer(6, 6, 7, {1, 1, 1, 0}, 50);
  no_longer(6, 6, 9, {1, 1, 1, 0}, 44);
  no_longer(6, 9, 7, {1, 1, 1, 0}, 68);
  no_longer(6, 15, 7, {1, 1, 1, 0}, 104);
  no_longer(7, 7, 7, {1, 1, 1, 0}, 62);
  no_longer(7, 14, 7, {1, 1, 1, 0}, 104);
  no_longer(7, 19, 7, {1, 1, 1, 0}, 134);
  no_longer(7, 7, 7, {18522, 18086, 9337, 601}, 1144890);
  no_longer(7, 14, 7, {18522, 18086, 9337, 601}, 1935400);
  no_longer(7, 19, 9, {18522, 18086, 9337, 601}, 2106255);
  no_longer(4, 8, 5, {81, 71, 99, 1}, 4668);
  no_longer(4, 8, 5, {73, 63, 113, 1}, 4572);
  no_longer(5, 8, 7, {73, 57, 93, 20}, 4440);
  no_longer(7, 14, 9, {67, 70, 111, 20}, 8434);
  no_longer(7, 7, 11, {10, 12, 8, 1}, 582);
  no_longer(7, 7, 11, {18522, 18086, 9337, 601}, 900968);
  no_longer(7, 16, 13, {116, 104, 49, 20}, 10351);
  no_longer(4, 8, 5, {115, 104, 98, 0}, 6114);
  no_longer(5, 8, 7, {74, 93, 108, 5}, 5172);
  no_longer(6, 7, 9, {94, 74, 112, 0}, 4658);
  no_longer(6, 6, 9, {91, 85, 73, 60}, 5624);
  no_longer(6, 10, 11, {115, 103, 57, 0}, 6354);
}

TEST_CASE("a search writes what it has found, however long the hops are") {
  using namespace stretto::schedule;
  const auto writes = [](const shape& sizes, const stretto::unit_costs& costs) {
    const stretto::job_table table(sizes.ranks, sizes.chunks, costs);
    CAPTURE(sizes.ranks);
    CAPTURE(sizes.microbatches);
    CAPTURE(costs.forward);
    CAPTURE(costs.backward_input);
    CAPTURE(costs.backward_weight);
    CAPTURE(costs.communication);
    for (const auto objective : {objective_kind::flush, objective_kind::span}) {
      const auto greedy = measure_order(zbv_greedy{.objective = objective}, sizes, table.view());
      const auto adaptive = measure_order(v_auto{.objective = objective}, sizes, table.view());
      REQUIRE(greedy.fits);
      REQUIRE(adaptive.fits);
      CHECK((objective == objective_kind::flush ? adaptive.makespan <= greedy.makespan
                                                : adaptive.span <= greedy.span));
    }
  };
  // Of these the best was once lost: exchanges had made it need more inputs at once than before.
  const shape five{.ranks = 2, .microbatches = 5, .chunks = 2};
  writes(five, {1, 10, 2, 100});
  writes(five, {0, 2, 1, 20});
  writes(five, {2, 1, 3, 300});
  writes(five, {7, 2, 7, 300});
  writes({.ranks = 2, .microbatches = 8, .chunks = 2}, {0, 7, 7, 100});
  std::mt19937 random(2);
  const auto below = [&](unsigned most) { return static_cast<int>(random() % most); };
  for (int round = 0; round < 60; ++round)
    writes({.ranks = below(4) + 1, .microbatches = below(10) + 1, .chunks = 2},
           {below(12), below(12), below(12), below(300)});
}

TEST_CASE("a closed form that needs more than a limit says so, and not that jobs are missing") {
  using namespace stretto::schedule;
  const auto refused = [](const auto& form, int ranks, int microbatches) {
    const shape sizes{.ranks = ranks, .microbatches = microbatches, .chunks = 2};
    stretto::job_table table(ranks, 2);
    const auto needed = measure_order(form, sizes, table.view()).peak;
    for (std::int64_t limit = 0; limit <= needed + 1; ++limit) {
      CAPTURE(ranks);
      CAPTURE(limit);
      table.limit.assign(static_cast<std::size_t>(ranks), limit);
      stretto::job_lists lists(ranks, form.capacity(sizes));
      stretto::job_sink out = lists.sink();
      REQUIRE(form.emit(sizes, table.view(), out).ok());
      const stretto::replay_input input{lists.rows(),       place(form.placed(), sizes),
                                        sizes.microbatches, 1,
                                        table.view(),       false,
                                        {}};
      const stretto::verdict answer =
          stretto::check::schedule(input, stretto::check::lists_of::training);
      // With less room backwards for the weights come earlier, which may do.
      if (limit >= needed) CHECK(answer.ok());
      if (!answer.ok()) CHECK(answer.what == stretto::fault::over_limit);
      if (limit < 2) CHECK(!answer.ok());
    }
  };
  for (int ranks = 2; ranks <= 9; ++ranks)
    for (const int microbatches : {3, 12}) {
      refused(v_half{}, ranks, microbatches);
      refused(v_min{}, ranks, microbatches);
    }
}

TEST_CASE("fill-drain on a wave runs weights where a rank would wait, if there is room for it") {
  // One micro-batch, stages 0 and 3 on rank 0: W3 lies in the gap before I0, W0 behind it.
  const shape sizes{.ranks = 2, .microbatches = 1, .chunks = 2};
  const auto makespan = [&](std::int64_t memory) {
    stretto::job_table table(2, 2, stretto::unit_costs{1, 1, 1, 10});
    table.limit.assign(2, memory);
    stretto::schedule::wave_fill_drain made(sizes, table.view(), false);
    return made.run() ? made.makespan() : -1;
  };
  CHECK(makespan(2) == 49);
  CHECK(makespan(1) == -1);
}

TEST_CASE("no search on a V is longer than fill-drain there that fits, however long the hops") {
  using namespace stretto::schedule;
  std::mt19937 random(20261201);
  const auto up_to = [&](unsigned most) { return static_cast<int>(random() % most) + 1; };
  int fitting = 0;
  for (int round = 0; round < 150; ++round) {
    shape sizes{.ranks = up_to(6), .microbatches = up_to(round % 10 == 0 ? 16 : 24), .chunks = 2};
    if (round % 10 != 0) sizes.chunks = up_to(4);
    stretto::unit_costs costs{up_to(12), up_to(12), up_to(12), up_to(80) - 1};
    costs.serial_links = round % 3 == 2;
    stretto::job_table table(sizes.ranks, sizes.chunks, costs);
    if (round % 2 == 1) {  // of some micro-batches whole backwards take less than their halves
      table.add_class();
      for (int k = 0; k < sizes.microbatches; ++k) table.classes.push_back(up_to(2) - 1);
      for (int rank = 0; rank < sizes.ranks; ++rank)
        for (int chunk = 0; chunk < sizes.chunks; ++chunk)
          table.at(1, rank, chunk, stretto::job_kind::backward).time -= up_to(6) - 1;
    }
    for (int rank = 0; rank < sizes.ranks; ++rank)
      table.limit.push_back(std::int64_t{sizes.chunks} * sizes.microbatches + up_to(3) - 1 -
                            (round % 7 == 0));
    const auto measured = [&](const auto& schedule) {
      stretto::job_lists lists;
      REQUIRE(stretto::emit_jobs(schedule, sizes, {}, table.view(), lists).ok());
      return support::measure_lists({.rows = lists.rows(),
                                     .where = stretto::place(schedule.placed(), sizes),
                                     .microbatches = sizes.microbatches,
                                     .costs = table.view()});
    };
    CAPTURE(round);
    const auto theirs = measured(gpipe{.placement = stretto::placement_kind::wave});
    if (!theirs.fits) continue;
    ++fitting;
    for (const auto objective : {objective_kind::flush, objective_kind::span}) {
      const auto not_longer_than = [&](const auto& ours) {
        REQUIRE(ours.fits);
        if (objective == objective_kind::flush) CHECK(ours.makespan <= theirs.makespan);
        if (objective == objective_kind::span) CHECK(ours.span <= theirs.span);
      };
      not_longer_than(measured(zbv_greedy{.objective = objective}));
      if (round % 10 == 0) not_longer_than(measured(v_auto{.objective = objective}));
    }
  }
  CHECK(fitting > 120);
}
