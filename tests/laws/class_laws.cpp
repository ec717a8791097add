// Micro-batches and slices that take different times and memory: replays, curves and bounds against
// an oracle of this file's own, and what searches and merged backwards make of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "laws/order_laws.hpp"
#include "stretto/check/all.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/memory/windows.hpp"
#include "stretto/model/bound.hpp"
#include "stretto/plan/emit_jobs.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/by_name.hpp"
#include "stretto/schedule/gpipe.hpp"
#include "stretto/schedule/merged.hpp"
#include "stretto/schedule/parts/half_merge.hpp"
#include "stretto/schedule/seq_1f1b.hpp"
#include "stretto/schedule/v_auto.hpp"
#include "stretto/schedule/zb_auto.hpp"
#include "stretto/schedule/zb_h1.hpp"
#include "stretto/schedule/zb_h2.hpp"
#include "stretto/schedule/zbv.hpp"
#include "support/schedules.hpp"

namespace {

using stretto::job;
using stretto::job_kind;
using stretto::shape;
namespace memory = stretto::memory;
namespace schedule = stretto::schedule;

std::int64_t pick(std::mt19937& random, std::int64_t from, std::int64_t to) {
  return from + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(to - from + 1));
}

//! Classes that differ from rank to rank, each micro-batch and slice of any.
stretto::job_table drawn(std::mt19937& random, const stretto::placement& where, int slices) {
  stretto::job_table table(where.ranks, where.chunks, {.communication = pick(random, 0, 4)});
  const int classes = static_cast<int>(pick(random, 1, 4));
  for (int more = 1; more < classes; ++more) table.add_class();
  for (int one = 0; one < classes; ++one)
    for (int rank = 0; rank < where.ranks; ++rank)
      for (int chunk = 0; chunk < where.chunks; ++chunk) {
        const std::int64_t taken = pick(random, 1, 9);
        const std::int64_t early = pick(random, 0, taken);
        // Some take far longer than others.
        const auto time = [&](std::int64_t least) {
          return pick(random, least, 9) * (pick(random, 0, 5) == 0 ? pick(random, 10, 90) : 1);
        };
        table.at(one, rank, chunk, job_kind::forward) = {time(1), taken, 0};
        table.at(one, rank, chunk, job_kind::backward_input) = {time(1), -early, 0};
        table.at(one, rank, chunk, job_kind::backward_weight) = {time(0), early - taken, 0};
        const std::int64_t halves = table.at(one, rank, chunk, job_kind::backward_input).time +
                                    table.at(one, rank, chunk, job_kind::backward_weight).time;
        table.at(one, rank, chunk, job_kind::backward) = {halves - pick(random, 0, halves / 3),
                                                          -taken, 0};
      }
  table.slices = slices;
  for (int cell = 0; cell < where.microbatches * slices; ++cell)
    table.classes.push_back(static_cast<std::int32_t>(pick(random, 0, classes - 1)));
  return table;
}

//! What a job takes, looked up without the library's help.
const stretto::job_cost& cost_of(const stretto::job_table& table, const stretto::placement& where,
                                 int rank, const job& work) {
  const auto cell = static_cast<std::size_t>(work.microbatch * table.slices + work.slice);
  const int chunk = where.chunk_of(work.stage, work.microbatch);
  const int first = (table.classes[cell] * table.ranks + rank) * table.chunks + chunk;
  return table.entries[static_cast<std::size_t>(first * stretto::cost_kinds) +
                       static_cast<std::size_t>(work.kind)];
}

struct outcome {
  std::int64_t makespan = 0;
  std::vector<std::int64_t> peaks;
};

//! Rank by rank, again and again, until all have run.
outcome oracle(const stretto::job_rows& rows, const stretto::placement& where, const shape& sizes,
               const stretto::job_table& table) {
  const int stages = where.stages();
  const auto cell = [&](int stage, const job& work) {
    return static_cast<std::size_t>((stage * sizes.microbatches + work.microbatch) * sizes.slices +
                                    work.slice);
  };
  std::vector<std::int64_t> made(cell(stages, {}) * 2, -1);  // ends of F, then of B or I
  std::vector<int> next(static_cast<std::size_t>(sizes.ranks));
  std::vector<std::int64_t> clock(next.size());
  outcome found{0, std::vector<std::int64_t>(next.size())};
  std::vector<std::int64_t> level(next.size());
  for (bool ran = true; ran;) {
    ran = false;
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      while (next[at] < rows.counts[rank]) {
        const int jobs = rows.at(rank, next[at]).paired ? 2 : 1;
        std::int64_t start = clock[at];
        bool ready = true;
        for (int one = 0; one < jobs; ++one) {
          const job& work = rows.at(rank, next[at] + one);
          if (work.kind == job_kind::backward_weight) continue;
          const bool ahead = work.kind == job_kind::forward;
          const int from = work.stage + (ahead ? -1 : 1);
          if (from < 0 || from >= stages) continue;
          const std::int64_t end = made[2 * cell(from, work) + (ahead ? 0 : 1)];
          ready = ready && end >= 0;
          const bool hops = where.rank_of(from, work.microbatch) != rank;
          start = std::max(start, end + (hops ? table.communication : 0));
        }
        if (!ready) break;
        std::int64_t time = 0;
        std::int64_t shorter = INT64_MAX;
        std::int64_t used = level[at];
        for (int one = 0; one < jobs; ++one) {
          const job& work = rows.at(rank, next[at] + one);
          const stretto::job_cost& cost = cost_of(table, where, rank, work);
          time += cost.time;
          shorter = std::min(shorter, cost.time);
          used += std::max<std::int64_t>(cost.change, 0);
          level[at] += cost.change;
        }
        if (jobs == 2) time -= shorter * table.pair_hides / 100;
        found.peaks[at] = std::max(found.peaks[at], used);
        clock[at] = start + time;
        for (int one = 0; one < jobs; ++one) {
          const job& work = rows.at(rank, next[at] + one);
          if (work.kind != job_kind::backward_weight)
            made[2 * cell(work.stage, work) + (work.kind == job_kind::forward ? 0 : 1)] = clock[at];
        }
        next[at] += jobs;
        ran = true;
      }
    }
  }
  for (int rank = 0; rank < sizes.ranks; ++rank)
    REQUIRE(next[static_cast<std::size_t>(rank)] == rows.counts[rank]);
  found.makespan = *std::ranges::max_element(clock);
  return found;
}

//! A schedule's lists under the table, and what the library says of them.
struct emitted {
  stretto::job_lists lists;
  stretto::verdict answer{};
  std::int64_t makespan = 0;
  std::int64_t span = 0;
  std::vector<stretto::rank_report> ranks;

  template <class Schedule>
  emitted(const Schedule& made, const shape& sizes, const stretto::job_table& table)
      : ranks(static_cast<std::size_t>(sizes.ranks)) {
    answer = stretto::emit_jobs(made, sizes, {}, table.view(), lists);
    if (!answer.ok()) return;
    const stretto::replay_input input{.rows = lists.rows(),
                                      .where = place(made.placed(), sizes),
                                      .microbatches = sizes.microbatches,
                                      .slices = sizes.slices,
                                      .costs = table.view()};
    answer = stretto::check::schedule(input, schedule::forward_only(made)
                                                 ? stretto::check::lists_of::forwards
                                                 : stretto::check::lists_of::training);
    if (!answer.ok()) return;
    const stretto::report all = stretto::measure(input, ranks);
    makespan = all.makespan;
    span = all.span;
  }
};

shape drawn_shape(std::mt19937& random) {
  return {.ranks = static_cast<int>(pick(random, 1, 5)),
          .microbatches = static_cast<int>(pick(random, 1, 12)),
          .chunks = static_cast<int>(pick(random, 1, 3)),
          .slices = static_cast<int>(pick(random, 0, 2) == 0 ? pick(random, 2, 4) : 1)};
}

}  // namespace

TEST_CASE("classes: times, memory and bounds go by each job's own") {
  std::mt19937 random(20261126);
  int several = 0;
  for (int round = 0; round < 400; ++round) {
    const shape sizes = drawn_shape(random);
    for (const schedule::any& made : schedule::catalogue()) {
      if (!made.supports(sizes).ok()) continue;
      INFO("round ", round, ", ", std::string(made.name), " ", laws::words(sizes));
      const stretto::placement where = place(made.placed(), sizes);
      stretto::job_table table = drawn(random, where, sizes.slices);
      table.pair_hides = static_cast<int>(pick(random, 0, 2) * 50);
      const emitted ours(made, sizes, table);
      REQUIRE(ours.answer == stretto::verdict{});
      const outcome theirs = oracle(ours.lists.rows(), where, sizes, table);
      CHECK(ours.makespan == theirs.makespan);
      for (int rank = 0; rank < sizes.ranks; ++rank)
        CHECK(ours.ranks[static_cast<std::size_t>(rank)].peak ==
              theirs.peaks[static_cast<std::size_t>(rank)]);
      if (!schedule::forward_only(made)) {
        const stretto::step_bound bound = stretto::lower_bound(where, table.view());
        CHECK(bound.flush <= ours.makespan);
        CHECK(bound.span <= ours.span);
      }
      several += table.view().class_count() > 1 ? 1 : 0;
    }
  }
  CHECK(several > 1'000);
}

TEST_CASE("classes that are alike change nothing") {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const shape sizes = drawn_shape(random);
    for (const schedule::any& made : schedule::catalogue()) {
      if (!made.supports(sizes).ok()) continue;
      INFO("round ", round, ", ", std::string(made.name), " ", laws::words(sizes));
      const stretto::placement where = place(made.placed(), sizes);
      stretto::job_table one = drawn(random, where, sizes.slices);
      one.classes.clear();
      one.entries.resize(
          static_cast<std::size_t>(where.ranks * where.chunks * stretto::cost_kinds));
      stretto::job_table two = one;
      two.add_class();
      for (int cell = 0; cell < sizes.microbatches * sizes.slices; ++cell)
        two.classes.push_back(static_cast<std::int32_t>(pick(random, 0, 1)));
      const emitted first(made, sizes, one);
      const emitted second(made, sizes, two);
      REQUIRE(second.answer == first.answer);
      CHECK(second.makespan == first.makespan);
      CHECK(second.ranks == first.ranks);
      const stretto::step_bound bound = stretto::lower_bound(where, two.view());
      if (!schedule::forward_only(made)) CHECK(bound.flush <= first.makespan);
      if (sizes.slices == 1) CHECK(bound.flush <= stretto::lower_bound(where, one.view()).flush);
    }
  }
}

TEST_CASE(
    "classes: a search takes the order that is best for them, within limits by their memory") {
  std::mt19937 random(11);
  int limited = 0;
  const auto hold = [&]<class Search>(Search search, int chunks) {
    for (int round = 0; round < 25; ++round) {
      const shape sizes{.ranks = static_cast<int>(pick(random, 2, 4)),
                        .microbatches = static_cast<int>(pick(random, 2, 8)),
                        .chunks = chunks};
      INFO("round ", round, " ", laws::words(sizes));
      const stretto::placement where = place(search.placed(), sizes);
      stretto::job_table table = drawn(random, where, 1);
      if (round % 2 == 1) table.limit.assign(static_cast<std::size_t>(sizes.ranks), 30);
      const bool spans = round % 4 >= 2;
      search.objective = spans ? schedule::objective_kind::span : schedule::objective_kind::flush;
      const emitted best(search, sizes, table);
      for (int variant = 0; variant < Search::variants; ++variant) {
        Search one = search;
        one.variant = variant;
        const emitted other(one, sizes, table);
        if (!other.answer.ok()) continue;
        REQUIRE(best.answer.ok());
        CHECK((spans ? best.span <= other.span : best.makespan <= other.makespan));
      }
      if (!best.answer.ok()) continue;
      for (const stretto::rank_report& each : best.ranks)
        if (round % 2 == 1) CHECK(each.peak <= 30);
      limited += round % 2;
    }
  };
  hold(schedule::zb_auto{}, 1);
  hold(schedule::v_auto{}, 2);
  CHECK(limited > 10);
}

TEST_CASE("classes: no span is below its bound where each micro-batch is slow elsewhere") {
  std::mt19937 random(19);
  int reached = 0;
  for (int round = 0; round < 300; ++round) {
    const shape sizes{.ranks = static_cast<int>(pick(random, 2, 4)),
                      .microbatches = static_cast<int>(pick(random, 2, 3))};
    INFO("round ", round, " ", laws::words(sizes));
    stretto::job_table table(sizes.ranks, 1);
    for (int one = 0; one < sizes.microbatches; ++one) {
      table.classes.push_back(one);
      if (one > 0) table.add_class();
    }
    const int busy = static_cast<int>(pick(random, 0, sizes.ranks - 1));
    for (int one = 0; one < sizes.microbatches; ++one)
      for (int rank = 0; rank < sizes.ranks; ++rank) {
        const std::int64_t weight = rank == busy ? 500 : 1;
        table.at(one, rank, 0, job_kind::forward).time = pick(random, 0, 2) == 0 ? 100 : 1;
        table.at(one, rank, 0, job_kind::backward_input).time = 1;
        table.at(one, rank, 0, job_kind::backward_weight).time = weight;
        table.at(one, rank, 0, job_kind::backward).time = 1 + weight;
      }
    const stretto::step_bound bound =
        stretto::lower_bound(place(schedule::zb_auto{}.placed(), sizes), table.view());
    const emitted made(schedule::zb_auto{.objective = schedule::objective_kind::span}, sizes,
                       table);
    REQUIRE(made.answer.ok());
    CHECK(bound.span <= made.span);
    CHECK(bound.flush <= made.makespan);
    reached += bound.span == made.span ? 1 : 0;
  }
  CHECK(reached > 30);
}

TEST_CASE("classes: backwards made whole again lengthen no step") {
  std::mt19937 random(13);
  int shorter = 0;
  const auto hold = [&]<class Schedule>(const Schedule& halved, int chunks) {
    for (int round = 0; round < 200; ++round) {
      const shape sizes{.ranks = static_cast<int>(pick(random, 2, 5)),
                        .microbatches = static_cast<int>(pick(random, 2, 10)),
                        .chunks = chunks};
      INFO(std::string(Schedule::name), " round ", round, " ", laws::words(sizes));
      stretto::job_table table = drawn(random, place(halved.placed(), sizes), 1);
      // Where a whole one saves nothing, it must not stand in anybody's way.
      const auto each = static_cast<std::size_t>(stretto::cost_kinds);
      for (std::size_t at = 0; round % 2 == 1 && at < table.entries.size(); at += each)
        table.entries[at + 1].time = table.entries[at + 2].time + table.entries[at + 3].time;
      const emitted split(halved, sizes, table);
      const emitted whole(schedule::merged<Schedule>(halved), sizes, table);
      REQUIRE(whole.answer.ok());
      CHECK(whole.makespan <= split.makespan);
      // By what it knows of the step, which is what the step takes.
      schedule::half_merge halves(sizes, place(halved.placed(), sizes), table.view(),
                                  split.lists.rows());
      REQUIRE(halves.live());
      CHECK(halves.makespan() == split.makespan);
      stretto::job_lists joined(sizes.ranks, halved.capacity(sizes));
      stretto::job_sink out = joined.sink();
      const auto made = halves.run({.length = halves.makespan()}, &out);
      const outcome theirs = oracle(joined.rows(), place(halved.placed(), sizes), sizes, table);
      CHECK(made.makespan == theirs.makespan);
      CHECK(made.makespan <= split.makespan);
      shorter += whole.makespan < split.makespan ? 1 : 0;
    }
  };
  hold(schedule::zbv{}, 2);
  hold(schedule::zb_h1{}, 1);
  hold(schedule::zb_h2{}, 1);
  CHECK(shorter > 50);
}

TEST_CASE("classes: a limit that an order keeps anyway makes none longer") {
  std::mt19937 random(19);
  const memory::windows copied{.offload = {.which = {.period = 1, .count = 1}}};
  int limited = 0;
  for (int round = 0; round < 60; ++round)
    for (const schedule::any& made : support::schedules()) {
      const shape sizes{.ranks = static_cast<int>(pick(random, 1, 4)),
                        .microbatches = static_cast<int>(pick(random, 2, 6)),
                        .chunks = made.supports({.ranks = 2, .microbatches = 4}).ok() ? 1 : 2};
      if (made.forward_only || !made.supports(sizes).ok()) continue;
      const memory::windows put = round % 4 == 0 ? copied : memory::windows{};
      INFO(made.name, " round ", round, " ", laws::words(sizes));
      stretto::job_table table = drawn(random, place(made.placed(), sizes), 1);
      const auto measured = [&] {
        stretto::job_lists lists;
        CHECK(stretto::emit_jobs(made, sizes, put, table.view(), lists).ok());
        const stretto::replay_input input{.rows = lists.rows(),
                                          .where = place(made.placed(), sizes),
                                          .microbatches = sizes.microbatches,
                                          .costs = table.view()};
        CHECK(stretto::check::bounded(input).ok());
        std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
        const std::int64_t makespan = stretto::measure(input, ranks).makespan;
        std::int64_t peak = 0;
        for (const stretto::rank_report& each : ranks) peak = std::max(peak, each.peak);
        return std::pair(makespan, peak);
      };
      const auto [free, peak] = measured();
      table.limit.assign(static_cast<std::size_t>(sizes.ranks), peak);
      CHECK(measured().first <= free);
      ++limited;
    }
  CHECK(limited > 600);
}

TEST_CASE("classes: plans keep every rule, with copies to the host and recomputes, too") {
  std::mt19937 random(17);
  for (int round = 0; round < 40; ++round) {
    const shape sizes{.ranks = static_cast<int>(pick(random, 1, 4)),
                      .microbatches = static_cast<int>(pick(random, 1, 8)),
                      .chunks = 2};
    for (const char* name : {"interleaved", "zbv", "v_half", "chimera"}) {
      const schedule::any made = *schedule::by_name(name);
      shape mine = sizes;
      if (!made.supports(mine).ok()) mine.chunks = 1;
      if (!made.supports(mine).ok()) continue;
      INFO("round ", round, ", ", std::string(name), " ", laws::words(mine));
      const stretto::job_table table = drawn(random, place(made.placed(), mine), 1);
      for (const int put_in : {0, 1, 2}) {
        stretto::plan_request request;
        if (put_in == 1) request.recompute = {.period = 2, .count = 1};
        if (put_in == 2) request.offload = {.which = {.period = 2, .count = 1}};
        const stretto::planned plans(made, mine, table.view(), stretto::overlap::separate{},
                                     std::move(request));
        CHECK(plans.answer() == stretto::verdict{});
      }
    }
  }
}

TEST_CASE("classes that are not there, or not of every micro-batch, do not fit") {
  stretto::job_table table(2, 1);
  const auto fits = [&](int microbatches, int slices) {
    return stretto::costs_fit(table.view(), {.ranks = 2, .microbatches = microbatches},
                              microbatches, slices)
        .ok();
  };
  CHECK(fits(3, 1));
  table.classes = {0, 1, 0};
  CHECK_FALSE(fits(3, 1));  // one table for two classes
  CHECK(table.add_class() == 1);
  CHECK(fits(3, 1));
  CHECK_FALSE(fits(4, 1));
  CHECK_FALSE(fits(3, 2));
  // Nor are jobs of other micro-batches, or slices, looked up there.
  const stretto::schedule::gpipe made;
  for (const shape& sizes :
       {shape{.ranks = 2, .microbatches = 3}, shape{.ranks = 2, .microbatches = 4}}) {
    const stretto::job_lists lists = laws::emitted(made, sizes);
    const stretto::replay_input input{.rows = lists.rows(),
                                      .where = place(made.placed(), sizes),
                                      .microbatches = sizes.microbatches,
                                      .costs = table.view()};
    const bool known = sizes.microbatches == 3;
    CHECK(stretto::check::schedule(input).ok() == known);
    CHECK(stretto::check::bounded(input).ok() == known);
    if (!known) CHECK(stretto::check::bounded(input).why == stretto::reason::out_of_range);
    std::vector<stretto::rank_report> ranks(2);
    CHECK(stretto::measure(input, ranks).answer.ok() == known);
  }
  table.classes[1] = -1;
  CHECK_FALSE(fits(3, 1));
  table.classes[1] = 2;
  CHECK_FALSE(fits(3, 1));
  table.classes[1] = 1;
  table.entries.pop_back();
  CHECK_FALSE(fits(3, 1));
}
