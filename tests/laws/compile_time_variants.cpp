// Schedules that try several orders pick the same at compile time, one constant a variant, as at
// run time, all at once.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/merged.hpp"
#include "stretto/schedule/parts/v_block_search.hpp"
#include "stretto/schedule/v_auto.hpp"
#include "stretto/schedule/zb_auto.hpp"
#include "stretto/schedule/zbv_greedy.hpp"

namespace {

using stretto::shape;
using stretto::schedule::merged;
using stretto::schedule::objective_kind;
using stretto::schedule::v_auto;
using stretto::schedule::v_block_search;
using stretto::schedule::zb_auto;
using stretto::schedule::zbv_greedy;

template <int Limit>
struct limited_to : stretto::memory::release_early {
  constexpr stretto::unit_costs costs() const {
    return {.forward = 10,
            .backward_input = 12,
            .backward_weight = 8,
            .communication = 1,
            .whole_saves = 3};
  }
  constexpr std::int64_t limit() const { return Limit; }
};

template <class Schedule>
struct by_span : Schedule {
  constexpr by_span() { this->objective = objective_kind::span; }
};
template <class Schedule>
struct one_alone : Schedule {
  constexpr one_alone() { this->variant = 1; }
};

template <shape Shape, class Schedule, int Limit>
void same_pick() {
  using step =
      stretto::pipeline<Shape, Schedule, stretto::assignment::unassigned, limited_to<Limit>>;
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
  same_pick<Shape, one_alone<Schedule>, 2 * Shape.ranks>();
  same_pick<Shape, Schedule, 1000>();
}

//! What a variant alone emits, as a number; -1 where it does not serve the shape, or fit.
template <class Schedule, int Chunks>
constexpr std::int64_t emitted(int variant) {
  constexpr shape sizes{.ranks = 2, .microbatches = 3, .chunks = Chunks};
  Schedule schedule{};
  schedule.variant = variant;
  const stretto::fixed_job_table<2, Chunks> table{{5, 6, 4, 1}};
  const std::int64_t limits[] = {4, 4};
  stretto::job_table_view costs = table.view();
  costs.limit = limits;
  stretto::fixed_job_lists<2, Schedule{}.capacity(sizes)> lists{};
  stretto::job_sink out = lists.sink();
  if (!schedule.supports(sizes) || !schedule.emit(sizes, costs, out)) return -1;
  std::int64_t sum = 0;
  for (int rank = 0; rank < sizes.ranks; ++rank)
    for (const stretto::job& work : lists.rows().row(rank))
      sum =
          (31 * sum + 7 * work.stage + 3 * work.microbatch + static_cast<int>(work.kind)) % 1000003;
  return sum;
}

template <class Schedule, int Chunks, int... Variant>
void alike(std::integer_sequence<int, Variant...>) {
  static constexpr std::int64_t constants[] = {emitted<Schedule, Chunks>(Variant)...};
  const int variants[] = {Variant...};
  int fit = 0;
  for (std::size_t at = 0; at < std::size(variants); ++at) {
    CAPTURE(variants[at]);
    CHECK(emitted<Schedule, Chunks>(variants[at]) == constants[at]);
    fit += constants[at] >= 0;
  }
  CHECK(2 * fit > static_cast<int>(std::size(variants)));
}

}  // namespace

TEST_CASE("every variant is emitted at compile time as at run time") {
  alike<zb_auto, 1>(std::make_integer_sequence<int, zb_auto::variants>{});
  alike<zbv_greedy, 2>(std::make_integer_sequence<int, zbv_greedy::variants>{});
  // Of each sort one: they take compilers long.
  constexpr int launched = v_block_search::steady * static_cast<int>(v_block_search::fills.size());
  alike<v_auto, 2>(std::integer_sequence<int, 0, launched, v_auto::blocks, v_auto::greedies,
                                         v_auto::passes, v_auto::ends, v_auto::closed,
                                         v_auto::drains>{});
}

TEST_CASE("the same variant is picked at compile time and at run time") {
  same_picks<shape{.ranks = 4, .microbatches = 6}, zb_auto>();
  same_picks<shape{.ranks = 3, .microbatches = 2}, zb_auto>();
  same_picks<shape{.ranks = 4, .microbatches = 6}, merged<zb_auto>>();
  same_picks<shape{.ranks = 4, .microbatches = 6, .chunks = 2}, zbv_greedy>();
  same_picks<shape{.ranks = 3, .microbatches = 2, .chunks = 3}, zbv_greedy>();
}
