// The lower bounds of steps whose forwards run again, or are copied to the host, against schedules
// and against orders of chance.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "laws/any_order.hpp"
#include "laws/order_laws.hpp"
#include "stretto/memory/windows.hpp"
#include "stretto/model/bound.hpp"
#include "stretto/plan/emit_jobs.hpp"
#include "stretto/plan/report.hpp"
#include "support/schedules.hpp"

namespace {

using stretto::job_kind;
using stretto::shape;
using stretto::memory::windows;

int below(std::mt19937& random, int end) {
  return static_cast<int>(random() % static_cast<unsigned>(end));
}

windows any_windows(std::mt19937& random) {
  windows put;
  const int period = 1 + below(random, 3);
  stretto::memory::microbatch_window which{.period = period, .count = 1 + below(random, period)};
  if (below(random, 3) == 0) which.first_chunk = below(random, 2);
  if (below(random, 3) == 0) which.last_chunk = which.first_chunk;
  if (below(random, 3) > 0)
    put.recompute = which;
  else
    put.offload = {.which = which, .lag = below(random, 3), .prefetch = below(random, 3)};
  return put;
}

//! Costs of chance also of what is put in, which takes part of what forwards keep.
stretto::job_table any_costs_put_in(std::mt19937& random, const stretto::placement& where) {
  stretto::job_table table = laws::any_costs(random, where);
  const unsigned longest = 1 + static_cast<unsigned>(random()) % 30;
  for (int rank = 0; rank < where.ranks; ++rank)
    for (int chunk = 0; chunk < where.chunks; ++chunk) {
      const std::int64_t kept = 1 + below(random, 4);
      const std::int64_t part = below(random, static_cast<int>(kept) + 1);
      table.at(rank, chunk, job_kind::forward).change = kept;
      table.at(rank, chunk, job_kind::backward).change = -kept;
      table.at(rank, chunk, job_kind::backward_weight).change = -kept;
      table.at(rank, chunk, job_kind::recompute) = {static_cast<std::int64_t>(random() % longest),
                                                    part, 0};
      table.at(rank, chunk, job_kind::offload) = {below(random, 4), -part, 0};
      table.at(rank, chunk, job_kind::reload) = {below(random, 4), part, 0};
    }
  return table;
}

struct bound_held {
  int cases = 0;
  int above_plain = 0;  // what is put in makes the bound longer
  int shorter = 0;      // or, within limits, shorter
};

//! @param costs  unlimited; half of all cases are held to what they keep
void hold(std::mt19937& random, const stretto::job_rows& rows, const stretto::placement& where,
          const windows& put, stretto::job_table costs, bound_held& seen) {
  std::vector<stretto::rank_report> reports(static_cast<std::size_t>(where.ranks));
  const auto made = stretto::measure(
      {.rows = rows, .where = where, .microbatches = where.microbatches, .costs = costs.view()},
      reports);
  REQUIRE(made.answer.ok());
  if (below(random, 2) == 0)
    for (const stretto::rank_report& each : reports) costs.limit.push_back(each.peak);
  const stretto::step_bound bound = stretto::lower_bound(where, costs.view(), put);
  CHECK(bound.flush <= made.makespan);
  CHECK(bound.span <= made.span);
  const stretto::step_bound plain = stretto::lower_bound(where, costs.view());
  ++seen.cases;
  seen.above_plain += bound.flush > plain.flush;
  seen.shorter += bound.flush < plain.flush;
}

}  // namespace

TEST_CASE("no schedule is below the bounds of what is put in between its jobs") {
  std::mt19937 random(3);
  bound_held seen;
  for (int round = 0; round < 60; ++round)
    for (const stretto::schedule::any& schedule : support::schedules()) {
      const shape sizes{.ranks = 1 + below(random, 5),
                        .microbatches = 1 + below(random, 10),
                        .chunks = 1 + below(random, 3)};
      if (schedule.forward_only || !schedule.supports(sizes)) continue;
      const stretto::placement where = stretto::place(schedule.placed(), sizes);
      const windows put = any_windows(random);
      const stretto::job_table costs = any_costs_put_in(random, where);
      stretto::job_lists lists;
      REQUIRE(stretto::emit_jobs(schedule, sizes, put, costs.view(), lists).ok());
      INFO(std::string(schedule.name), " ", laws::words(sizes), " round ", round);
      hold(random, lists.rows(), where, put, costs, seen);
    }
  MESSAGE(seen.cases, " steps: ", seen.above_plain, " bounds longer for what is put in, ",
          seen.shorter, " shorter");
  CHECK(seen.cases > 500);
  CHECK(seen.above_plain > 100);
  CHECK(seen.shorter > 10);
}

TEST_CASE("nor is any order, wherever its stages lie, with forwards that run again or copies") {
  std::mt19937 random(4);
  bound_held seen;
  for (int round = 0; round < 20000; ++round) {
    const laws::any_order order(random);
    const stretto::placement where = order.where();
    const windows put = any_windows(random);
    stretto::job_lists lists(where.ranks, put.room(order.rows().stride));
    stretto::job_sink sink = lists.sink();
    REQUIRE(stretto::detail::put_in(put, order.rows(), where, 1, sink).ok());
    CAPTURE(round);
    hold(random, lists.rows(), where, put, any_costs_put_in(random, where), seen);
  }
  MESSAGE(seen.cases, " orders: ", seen.above_plain, " bounds longer for what is put in, ",
          seen.shorter, " shorter");
  CHECK(seen.above_plain > 1000);
  CHECK(seen.shorter > 10);
}

TEST_CASE("of tiny steps that run all forwards again some order mostly meets the bound") {
  std::mt19937 random(5);
  const windows put{.recompute = stretto::memory::recompute_all};
  int cases = 0;
  int met = 0;
  for (int ranks = 1; ranks <= 3; ++ranks)
    for (int microbatches = 1; microbatches <= 3; ++microbatches)
      for (int again = 0; again <= 4; ++again) {
        std::vector<std::int32_t> table;
        for (int rank = 0; rank < ranks; ++rank) table.push_back(rank);
        stretto::job_table costs(ranks, 1);
        for (int rank = 0; rank < ranks; ++rank)
          costs.at(rank, 0, job_kind::recompute) = {again, 1, 0};
        std::int64_t bound = 0;
        std::int64_t best = std::numeric_limits<std::int64_t>::max();
        for (int tried = 0; tried < 1500; ++tried) {
          const laws::any_order order(random, ranks, table, microbatches);
          stretto::job_lists lists(ranks, put.room(order.rows().stride));
          stretto::job_sink sink = lists.sink();
          REQUIRE(stretto::detail::put_in(put, order.rows(), order.where(), 1, sink).ok());
          std::vector<stretto::rank_report> reports(static_cast<std::size_t>(ranks));
          best = std::min(best, stretto::measure({.rows = lists.rows(),
                                                  .where = order.where(),
                                                  .microbatches = microbatches,
                                                  .costs = costs.view()},
                                                 reports)
                                    .makespan);
          bound = stretto::lower_bound(order.where(), costs.view(), put).flush;
        }
        INFO(ranks, " ranks, ", microbatches, " micro-batches, again ", again);
        CHECK(bound <= best);
        ++cases;
        met += bound == best;
      }
  MESSAGE(met, " bounds of ", cases, " are met");
  CHECK(met > cases / 2);
}
