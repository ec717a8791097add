#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "stretto/stretto.hpp"
#include "support/emitted.hpp"
#include "support/schedules.hpp"

namespace {

using stretto::job;
using stretto::job_cost;
using stretto::job_kind;
using stretto::job_table;
namespace memory = stretto::memory;

struct recomputing : support::emitted {
  template <class Schedule>
  recomputing(const Schedule& schedule, const stretto::shape& shape, const job_table& with,
              const memory::recompute_window& window)
      : emitted(schedule, shape, with, {window, {}}) {}
  int recomputes(int rank) const { return count(rank, job_kind::recompute); }
};

//! A forward keeps 10, of which a recompute brings back 8.
constexpr stretto::unit_costs costs{.forward = 2,
                                    .backward_input = 2,
                                    .backward_weight = 2,
                                    .memory_forward = 10,
                                    .memory_backward_weight = -10,
                                    .memory_recompute = 8};

// What a second run takes, of a job and of layers together.
constexpr stretto::unit_costs saving{
    .forward = 7, .memory_forward = 10, .memory_recompute = 4, .recompute_saves = 5};
static_assert(saving.of(job_kind::recompute) == stretto::job_cost{2, 4, 0});
static_assert(stretto::unit_costs{.forward = 7}.of(job_kind::recompute).time == 7);
static_assert(stretto::sum_of_layers({1, 3}, [](int layer) {
                auto one = saving;
                if (layer == 2) one.recompute_saves = 0;
                return one;
              }).of(job_kind::recompute) == stretto::job_cost{2 + 7 + 2, 12, 0});

TEST_CASE("every schedule with every window is valid, and what is left of it is the schedule") {
  for (const stretto::schedule::any& schedule : support::schedules()) {
    for (int ranks = 1; ranks <= 4; ++ranks)
      for (int chunks = 1; chunks <= 3; ++chunks)
        for (const int microbatches : {1, 4, 7})
          for (const auto& window :
               {memory::recompute_window{}, memory::recompute_all, memory::recompute_window{4, 3},
                memory::recompute_window{1, 1, 1, 1}}) {
            const stretto::shape shape{
                .ranks = ranks, .microbatches = microbatches, .chunks = chunks};
            if (!schedule.supports(shape).ok()) continue;
            const int held = stretto::place(schedule.placed(), shape).chunks;
            const recomputing made(schedule, shape, job_table(ranks, held, costs), window);
            CAPTURE(std::string(schedule.name));
            CAPTURE(ranks);
            CAPTURE(chunks);
            CAPTURE(microbatches);
            REQUIRE(made.answer.ok());
            const auto verdict = stretto::check::schedule(made.input());
            CHECK(verdict.ok());
            for (int rank = 0; rank < ranks; ++rank) {
              // One right before each backward that wants one, unless its forward stands there.
              int expected = 0;
              const auto row = made.lists.rows().row(rank);
              for (std::size_t at = 0; at < row.size(); ++at) {
                const job& work = row[at];
                const bool wanted = stretto::is_input_gradient(work.kind) &&
                                    window.holds(made.where.chunk_of(work), work.microbatch);
                const job forward{work.stage, work.microbatch};
                std::size_t before = at;  // of the job, or of the pair that it ends
                if (before > 0 && row[before - 1].paired) --before;
                while (before > 0 && row[before - 1].kind == job_kind::recompute) --before;
                expected += wanted && (before == 0 || !(row[before - 1] == forward));
              }
              CHECK(made.recomputes(rank) == expected);
            }
          }
  }
}

TEST_CASE("1F1B keeps 2 of 10 for each micro-batch, and 8 more for the one at work") {
  const int p = 4;
  const stretto::shape shape{.ranks = p, .microbatches = 8};
  std::int64_t plain = 0;
  std::int64_t again = 0;
  const recomputing kept(stretto::schedule::one_f_one_b{}, shape, job_table(p, 1, costs), {});
  const recomputing made(stretto::schedule::one_f_one_b{}, shape, job_table(p, 1, costs),
                         memory::recompute_all);
  const auto before = kept.report(&plain);
  const auto after = made.report(&again);
  for (int rank = 0; rank < p; ++rank) {
    const auto at = static_cast<std::size_t>(rank);
    CHECK(before[at].peak == 10 * (p - rank));
    CHECK(after[at].peak == 2 * (p - rank) + 8);
    CHECK(after[at].busy == before[at].busy + (rank + 1 < p ? 8 * 2 : 0));
  }
  CHECK(again > plain);
  CHECK(again <= plain + 8 * 2 + 2 * p);
  // Three of four recompute: one of four in flight keeps all.
  const recomputing partly(stretto::schedule::one_f_one_b{}, shape, job_table(p, 1, costs), {4, 3});
  const auto peaks = partly.report();
  CHECK(peaks[0].peak == 10 + 3 * 2 + 8);
}

TEST_CASE("in a plan, what a forward saves that runs again is gone until it does") {
  const int p = 8;
  const std::int64_t stash = 64 * 100;
  const auto saved = [&](const memory::recompute_window& window) {
    stretto::plan_request request;
    request.stages = {{.output = 64, .stash = stash}};
    request.recompute = window;
    const job_table table(p, 1);
    const stretto::planned made(stretto::schedule::one_f_one_b{}, {.ranks = p, .microbatches = 24},
                                table.view(), stretto::overlap::separate{}, request);
    REQUIRE(made.answer().ok());
    std::vector<std::int64_t> stashes;
    for (const auto& plan : made.plans())
      stashes.push_back(stretto::measure_arena(plan).saved / stash);
    return stashes;
  };
  CHECK(saved({}) == std::vector<std::int64_t>{8, 7, 6, 5, 4, 3, 2, 1});
  CHECK(saved(memory::recompute_all) == std::vector<std::int64_t>(8, 1));
  // Of p in flight half are kept, and the one at work.
  CHECK(saved({8, 4})[0] == 5);
}

struct passing_little : memory::release_early {
  constexpr stretto::stage_bytes bytes(int) const {
    return {.stash = 6400, .kept = 640, .passing = 64};
  }
  constexpr memory::recompute_window recompute() const { return {3, 2}; }
};

TEST_CASE("a forward that runs again has the stash that it is said to have, and nothing kept") {
  using compiled = stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 6},
                                     stretto::schedule::dualpipe, stretto::assignment::unassigned,
                                     passing_little>;
  static_assert(stretto::valid<compiled>);
  const job_table table(2, 2);
  const stretto::planned made(stretto::schedule::dualpipe{}, {.ranks = 2, .microbatches = 6},
                              table.view(), stretto::overlap::separate{},
                              stretto::request_of(passing_little{}, 2));
  REQUIRE(made.answer().ok());
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const stretto::plan_view& plan = made.plans()[rank];
    CHECK(std::ranges::equal(plan.buffers, compiled::plans()[rank].buffers));
    const auto runs_again = [&](const job& of) {
      return std::ranges::any_of(plan.instructions, [&](const auto& at) {
        return at.what.kind == job_kind::recompute && at.what.stage == of.stage &&
               at.what.microbatch == of.microbatch;
      });
    };
    int passed = 0;
    for (const auto& at : plan.instructions) {
      if (at.what.kind != job_kind::forward && at.what.kind != job_kind::recompute) continue;
      const bool passes = at.what.kind == job_kind::forward && runs_again(at.what);
      passed += passes;
      std::vector<std::int64_t> saved;
      for (const auto& use : plan.uses.subspan(static_cast<std::size_t>(at.first_use),
                                               static_cast<std::size_t>(at.use_count)))
        if (stretto::is_saved(use.role))
          saved.push_back(plan.buffers[static_cast<std::size_t>(use.buffer)].bytes);
      CHECK(saved == (passes ? std::vector<std::int64_t>{64}
                             : std::vector<std::int64_t>{6400, 640}));
    }
    CHECK(passed > 0);
  }
}

TEST_CASE("with less for what runs again, every schedule's plans keep all rules") {
  for (const stretto::schedule::any& schedule : support::schedules())
    for (const memory::recompute_window& window :
         {memory::recompute_all, memory::recompute_window{4, 3}}) {
      if (stretto::schedule::forward_only(schedule)) continue;  // nothing runs again
      stretto::shape shape{.ranks = 4, .microbatches = 8};
      if (!schedule.supports(shape).ok()) shape.chunks = 2;
      const int held = stretto::place(schedule.placed(), shape).chunks;
      const recomputing jobs(schedule, shape, job_table(4, held, costs), window);
      REQUIRE(jobs.answer.ok());
      std::int64_t last = -1;
      for (const std::int64_t passing : {0, 640, 6400 + 640, -1}) {
        CAPTURE(std::string(schedule.name));
        CAPTURE(passing);
        stretto::plan_request request;
        request.stages = {{.stash = 6400, .kept = 640, .passing = passing}};
        const stretto::planned made(jobs.input(), stretto::overlap::separate{}, request);
        REQUIRE(made.answer() == stretto::verdict{});
        std::int64_t saved = 0;
        for (const auto& plan : made.plans()) saved += stretto::measure_arena(plan).saved;
        CHECK(saved >= last);
        last = saved;
      }
    }
}

TEST_CASE("a schedule under a limit uses what recomputes save") {
  const int p = 4;
  const stretto::shape shape{.ranks = p, .microbatches = 8};
  job_table table(p, 1, costs);
  table.limit.assign(p, 22);
  const stretto::schedule::zb_auto schedule;
  std::int64_t kept = 0;
  std::int64_t recomputed = 0;
  const recomputing plain(schedule, shape, table, {});
  const recomputing made(schedule, shape, table, memory::recompute_all);
  REQUIRE(plain.answer.ok());
  REQUIRE(made.answer.ok());
  CHECK(stretto::check::schedule(plain.input()).ok());
  CHECK(stretto::check::schedule(made.input()).ok());
  for (const auto& rank : made.report(&recomputed)) CHECK(rank.peak <= 22);
  plain.report(&kept);
  CHECK(recomputed < kept);  // two in flight cost more than running forwards twice
  // Far under the minimum, one under it, and at it.
  for (const std::int64_t limit : {1, 9, 10}) {
    table.limit.assign(p, limit);
    const recomputing tight(schedule, shape, table, memory::recompute_all);
    CHECK(tight.answer.ok() == (limit >= 10));
    if (!tight.answer.ok()) CHECK(tight.answer.amount == 10);
    if (tight.answer.ok()) CHECK(stretto::check::schedule(tight.input()).ok());
  }
}

TEST_CASE("pairs get their recompute before them; slices are refused") {
  const stretto::shape shape{.ranks = 4, .microbatches = 8};
  const recomputing made(stretto::schedule::dualpipe{}, shape, job_table(4, 2, costs),
                         memory::recompute_all);
  REQUIRE(made.answer.ok());
  CHECK(stretto::check::schedule(made.input()).ok());
  const recomputing sliced(stretto::schedule::seq_1f1b{},
                           {.ranks = 2, .microbatches = 2, .slices = 2}, job_table(2, 1, costs),
                           memory::recompute_all);
  CHECK(sliced.answer.why == stretto::reason::slices_not_recomputed);
  for (const memory::recompute_window& window :
       {memory::recompute_window{0, 1}, {1, -1}, {1, 1, 1, 0}, {1, 1, -1}}) {
    const recomputing wrong(stretto::schedule::gpipe{}, {.ranks = 2, .microbatches = 2},
                            job_table(2, 1, costs), window);
    CHECK(wrong.answer.why == stretto::reason::bad_recompute_window);
  }
}

}  // namespace
