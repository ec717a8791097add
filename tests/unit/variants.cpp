// Schedules that try several orders: what is picked is the best, and the same at compile time, one
// constant a variant, as at run time, all at once.
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "stretto/check/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/all.hpp"

namespace {

using stretto::shape;
using stretto::schedule::best_variant;
using stretto::schedule::objective_kind;
using stretto::schedule::v_auto;
using stretto::schedule::variant_choice;
using stretto::schedule::variant_score;
using stretto::schedule::zb_auto;
using stretto::schedule::zbv_greedy;

template <int Limit>
struct measured : stretto::memory::release_early {
  constexpr stretto::unit_costs costs() const {
    return {.forward = 10, .backward_input = 12, .backward_weight = 8, .communication = 1};
  }
  constexpr std::int64_t limit() const { return Limit; }
};

template <class Schedule>
struct by_span : Schedule {
  constexpr by_span() { this->objective = objective_kind::span; }
};
template <class Schedule>
struct first_alone : Schedule {
  constexpr first_alone() { this->variant = 0; }
};

template <shape Shape, class Schedule, int Limit>
void same_pick() {
  using step = stretto::pipeline<Shape, Schedule, stretto::assignment::unassigned, measured<Limit>>;
  static_assert(stretto::valid<step>);
  const Schedule schedule;
  stretto::job_lists lists(Shape.ranks, schedule.capacity(Shape));
  stretto::job_sink out = lists.sink();
  REQUIRE(schedule.emit(Shape, step::costs(), out).ok());
  for (int rank = 0; rank < Shape.ranks; ++rank) {
    const auto here = lists.rows().row(rank);
    const auto there = step::jobs().row(rank);
    CHECK(std::vector(here.begin(), here.end()) == std::vector(there.begin(), there.end()));
  }
}

template <shape Shape, class Schedule>
void same_picks() {
  same_pick<Shape, Schedule, 2 * Shape.ranks>();
  same_pick<Shape, by_span<Schedule>, Shape.ranks + 1>();
  same_pick<Shape, first_alone<Schedule>, 2 * Shape.ranks>();
}

//! Makespan and span of what one variant emits, by the replay.
template <class Schedule>
variant_score replayed(const Schedule& schedule, const shape& sizes,
                       const stretto::job_table_view& table) {
  stretto::job_lists lists(sizes.ranks, schedule.capacity(sizes));
  stretto::job_sink out = lists.sink();
  if (!schedule.emit(sizes, table, out)) return {};
  const stretto::replay_input input{.rows = lists.rows(),
                                    .where = stretto::place(schedule.placed(), sizes),
                                    .microbatches = sizes.microbatches,
                                    .costs = table};
  REQUIRE(stretto::check::schedule(input).ok());
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
  const int stride = lists.rows().stride;
  std::vector<stretto::job_time> times(static_cast<std::size_t>(sizes.ranks * stride));
  const auto made = stretto::measure(input, ranks, times);
  std::int64_t span = 0;
  for (int rank = 0; rank < sizes.ranks; ++rank) {
    const auto first = static_cast<std::size_t>(rank * stride);
    const auto last = first + static_cast<std::size_t>(stride - 1);
    span = std::max(span, times[last].end - times[first].start);
  }
  return stretto::schedule::score_of(schedule.objective, made.makespan, span);
}

template <class Schedule>
void scores_are_replayed(int chunks) {
  for (const int limit : {2, 3, 5, 8, 1000})
    for (const auto objective : {objective_kind::flush, objective_kind::span}) {
      const shape sizes{.ranks = 4, .microbatches = 9, .chunks = chunks};
      stretto::job_table table(4, chunks, {5, 6, 4, 1});
      table.limit.assign(4, limit);
      Schedule schedule{.objective = objective};
      variant_choice choice;
      for (int variant = 0; variant < Schedule::variants; ++variant) {
        const variant_score score = schedule.score(sizes, table.view(), variant);
        choice.offer(variant, score);
        if (!score.fits || score.first == stretto::unlimited) continue;
        INFO("limit ", limit, " variant ", variant);
        CHECK(replayed(Schedule{.objective = objective, .variant = variant}, sizes, table.view()) ==
              score);
      }
      CHECK(best_variant(schedule, sizes, table.view()) == choice.best);
      CHECK(replayed(schedule, sizes, table.view()) == choice.least);
    }
}

}  // namespace

TEST_CASE("the same variant is picked at compile time and at run time") {
  same_picks<shape{.ranks = 4, .microbatches = 6}, zb_auto>();
  same_picks<shape{.ranks = 3, .microbatches = 2}, zb_auto>();
  same_picks<shape{.ranks = 4, .microbatches = 6, .chunks = 2}, zbv_greedy>();
  same_picks<shape{.ranks = 3, .microbatches = 2, .chunks = 3}, zbv_greedy>();
}

TEST_CASE("a variant's score is what a replay of its jobs takes, and the best is emitted") {
  scores_are_replayed<zb_auto>(1);
  scores_are_replayed<zbv_greedy>(2);
  scores_are_replayed<v_auto>(2);
}

TEST_CASE("of equal variants the last is picked, and none that does not fit") {
  variant_choice choice;
  choice.offer(0, {});
  CHECK(choice.best == -1);
  choice.offer(1, {true, 7, 7});
  choice.offer(2, {true, 7, 6});
  choice.offer(3, {true, 7, 6});
  choice.offer(4, {true, 8, 1});
  choice.offer(5, {});
  CHECK(choice.best == 3);
}

TEST_CASE("a variant that fits no more does not keep the others from being tried") {
  const shape sizes{.ranks = 4, .microbatches = 9, .chunks = 2};
  stretto::job_table table(4, 2);
  table.limit.assign(4, 3);
  const zbv_greedy schedule;
  int fit = 0;
  for (int variant = 0; variant < zbv_greedy::variants; ++variant)
    fit += schedule.score(sizes, table.view(), variant).fits ? 1 : 0;
  CHECK(fit > 0);
  CHECK(fit < zbv_greedy::variants);
  CHECK(replayed(schedule, sizes, table.view()).fits);
}

TEST_CASE("a single variant that does not fit names the smallest limit under which it does") {
  const auto refused = [](const auto& schedule, int chunks, std::int64_t low) {
    const shape sizes{.ranks = 4, .microbatches = 9, .chunks = chunks};
    stretto::job_table table(4, chunks);
    table.limit = {100, low, low + 1, 100};
    const auto emit = [&] {
      stretto::job_lists lists(4, schedule.capacity(sizes));
      stretto::job_sink out = lists.sink();
      const auto answer = schedule.emit(sizes, table.view(), out);
      CHECK((answer.ok() || lists.rows().total() == 0));
      return answer;
    };
    const stretto::verdict answer = emit();
    CHECK(answer.what == stretto::fault::over_limit);
    CHECK(answer.rank == 1);
    CHECK(answer.limit == low);
    REQUIRE(answer.amount > low);
    const auto raise = [&](std::int64_t limit) {
      for (int rank : {1, 2})
        table.limit[static_cast<std::size_t>(rank)] = std::max(low + rank - 1, limit);
    };
    raise(answer.amount - 1);
    CHECK(!emit().ok());
    raise(answer.amount);
    CHECK(emit().ok());
  };
  for (int variant = 0; variant < zb_auto::variants; ++variant)
    refused(zb_auto{.variant = variant}, 1, 0);
  for (int variant = 0; variant < zbv_greedy::variants; ++variant)
    refused(zbv_greedy{.variant = variant}, 2, 1);
  for (int variant = 0; variant < v_auto::variants; ++variant)
    refused(v_auto{.variant = variant}, 2, 1);
}
