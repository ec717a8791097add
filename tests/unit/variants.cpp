// Schedules that try several orders: what is picked is the best.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/all.hpp"
#include "stretto/schedule/parts/kept_room.hpp"
#include "support/measured_order.hpp"

namespace {

using stretto::shape;
using stretto::schedule::best_possible;
using stretto::schedule::best_variant;
using stretto::schedule::kept_room;
using stretto::schedule::objective_kind;
using stretto::schedule::v_auto;
using stretto::schedule::variant_choice;
using stretto::schedule::variant_score;
using stretto::schedule::zb_auto;
using stretto::schedule::zbv_greedy;

//! A search that has nothing to try, as one may whose variants depend on a template's arguments.
struct nothing_to_try : zb_auto {
  static constexpr int variants = 0;
  constexpr stretto::verdict emit(const shape& sizes, const stretto::job_table_view& table,
                                  stretto::job_sink&) const {
    return best_variant(*this, sizes, table) < 0
               ? stretto::refuse(stretto::fault::unsupported,
                                 stretto::reason::variant_out_of_range)
               : stretto::verdict{};
  }
};

//! The score of what is emitted, by the replay.
template <class Schedule>
variant_score replayed(const Schedule& schedule, const shape& sizes,
                       const stretto::job_table_view& table) {
  const support::measured_order made = support::measure_order(schedule, sizes, table);
  if (!made.fits) return {};
  return stretto::schedule::score_of(schedule.objective, made.makespan, made.span);
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
        variant_score score = schedule.score(sizes, table.view(), variant);
        stretto::job_lists lists(sizes.ranks, schedule.capacity(sizes));
        stretto::job_sink out = lists.sink();
        CHECK(schedule.score(sizes, table.view(), variant, &out) == score);
        choice = choice.with(variant, score);
        if (!score.fits || score.first == stretto::unlimited) continue;
        INFO("limit ", limit, " variant ", variant);
        score.room = 0;  // which a replay does not tell
        CHECK(replayed(Schedule{.objective = objective, .variant = variant}, sizes, table.view()) ==
              score);
      }
      CHECK(best_variant(schedule, sizes, table.view()) == choice.best);
      choice.least.room = 0;
      CHECK(replayed(schedule, sizes, table.view()) == choice.least);
    }
}

}  // namespace

TEST_CASE("a variant's score is what a replay of its jobs takes, and the best is emitted") {
  scores_are_replayed<zb_auto>(1);
  scores_are_replayed<zbv_greedy>(2);
  scores_are_replayed<v_auto>(2);
}

TEST_CASE("of equal variants the first is picked, and none that does not fit") {
  variant_choice choice;
  choice = choice.with(0, {});
  CHECK(choice.best == -1);
  CHECK(!choice.is_settled({true, 0, 0, 0}));
  choice = choice.with(1, {true, 7, 0, 7}).with(2, {true, 7, 0, 6}).with(3, {true, 7, 0, 6});
  CHECK(choice.best == 2);
  choice = choice.with(4, {true, 7, 1, 1}).with(5, {true, 8, 0, 1}).with(6, {});
  CHECK(choice.best == 2);
  CHECK(choice.with(7, {true, 6, 2, 9}).best == 7);
  for (const variant_score& possible : {variant_score{true, 6, 0, 6}, variant_score{true, 7, 0, 5}})
    CHECK(!choice.is_settled(possible));
  CHECK(choice.is_settled({true, 7, 0, 6}));
  CHECK(!variant_choice{}.with(0, {true, 7, 1, 6}).is_settled({true, 7, 0, 6}));
}

namespace {

//! A search whose third variant cannot be beaten; it counts how many are scored.
struct counting : zb_auto {
  int* tries = nullptr;

  variant_score score(const shape& sizes, const stretto::job_table_view& table, int tried,
                      stretto::job_sink*) const {
    ++*tries;
    variant_score made = best_possible(*this, sizes, table);
    if (tried < 2) ++made.second;
    return made;
  }
};

}  // namespace

TEST_CASE("none is tried after one that no other can beat") {
  const stretto::job_table table(4, 1);
  int tries = 0;
  CHECK(best_variant(counting{{}, &tries}, {4, 8, 1}, table.view()) == 2);
  CHECK(tries == 3);
}

TEST_CASE("of orders that are as short, one is taken that keeps less") {
  const auto keeps = [](const auto& schedule, int chunks, std::int64_t most) {
    const shape sizes{.ranks = 8, .microbatches = 64, .chunks = chunks};
    const stretto::job_table table(8, chunks);
    const std::string_view name = schedule.name;
    INFO(name, ", chunks ", chunks);
    const auto made = support::measure_order(schedule, sizes, table.view());
    REQUIRE(made.fits);
    CHECK(made.peak <= most);
    // As short as any, however much it may keep.
    const auto score =
        schedule.score(sizes, table.view(), best_variant(schedule, sizes, table.view()));
    for (int variant = 0; variant < schedule.variants; ++variant) {
      const auto other = schedule.score(sizes, table.view(), variant);
      if (other.fits) CHECK(score.first <= other.first);
    }
  };
  keeps(zb_auto{}, 1, 16);
  keeps(zbv_greedy{}, 2, 16);
  keeps(zbv_greedy{}, 3, 48);
  keeps(v_auto{}, 2, 16);
}

TEST_CASE("rooms: what 1F1B keeps, twice that, all, and less one where the one before has all") {
  const shape sizes{.ranks = 2, .microbatches = 9, .chunks = 2};
  stretto::job_table table(2, 2);
  const auto limits = [&](int room) {
    const kept_room within(sizes, table.view(), room);
    return std::vector(within.table().limit.begin(), within.table().limit.end());
  };
  const auto repeats = [&](int room) { return kept_room::repeats(sizes, table.view(), room); };
  const std::int64_t all = stretto::unlimited;
  CHECK(limits(0) == std::vector<std::int64_t>{4, 4});
  CHECK(limits(1) == std::vector<std::int64_t>{8, 8});
  CHECK(limits(2) == std::vector<std::int64_t>{all, all});
  CHECK(kept_room::widest(sizes, table.view()) == 2);

  table.limit = {3, 7};
  CHECK(limits(0) == std::vector<std::int64_t>{3, 4});
  CHECK(limits(1) == table.limit);
  CHECK(!repeats(0));
  CHECK(!repeats(1));
  CHECK(limits(2) == std::vector<std::int64_t>{2, 6});
  CHECK(!repeats(2));
  CHECK(kept_room::widest(sizes, table.view()) == 1);
  CHECK(limits(kept_room::one_less) == limits(2));

  table.limit = {3, 4};
  CHECK(limits(0) == table.limit);
  CHECK(limits(1) == std::vector<std::int64_t>{2, 3});
  CHECK(!repeats(1));
  CHECK(repeats(2));
  CHECK(kept_room::widest(sizes, table.view()) == 0);

  table.limit = {18, 18};  // all that there is
  CHECK(limits(2) == table.limit);
  CHECK(limits(kept_room::one_less) == table.limit);
  CHECK(!kept_room::is_tight(sizes, table.view()));

  // Of a rank with a base, jobs that need more for a while, and one chunk that keeps more.
  table.limit.clear();
  table.base = {100, 0};
  table.at(0, 0, stretto::job_kind::forward) = {1, 10, 13};
  table.at(0, 1, stretto::job_kind::backward_input) = {1, 0, 5};
  CHECK(limits(0) == std::vector<std::int64_t>{100 + 5 + 4 * 10, 4});

  // Where all micro-batches have room, or nothing is kept, there is but one room.
  CHECK(kept_room::widest({.ranks = 5, .microbatches = 9, .chunks = 2},
                          stretto::job_table(5, 2).view()) == 1);
  CHECK(kept_room::widest({.ranks = 9, .microbatches = 9, .chunks = 2},
                          stretto::job_table(9, 2).view()) == 0);
  CHECK(kept_room::widest(
            sizes,
            stretto::job_table(2, 2, {.memory_forward = 0, .memory_backward_weight = 0}).view()) ==
        0);
}

TEST_CASE("a room that repeats another is not tried, unless by itself") {
  const shape sizes{.ranks = 4, .microbatches = 9, .chunks = 2};
  stretto::job_table table(4, 2);
  table.limit.assign(4, 8);
  const int second = 1;  // the second rules, room 0
  const int later = 2 * static_cast<int>(zbv_greedy::rules.size()) + second;  // in room 2
  CHECK(zbv_greedy{}.score(sizes, table.view(), second).fits);
  CHECK(!zbv_greedy{}.score(sizes, table.view(), later).fits);
  CHECK(zbv_greedy{.variant = later}.score(sizes, table.view(), later).fits);
  table.limit[2] = 9;
  CHECK(zbv_greedy{}.score(sizes, table.view(), later).fits);
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

TEST_CASE("a search without variants is asked for none, at either time") {
  constexpr shape sizes{.ranks = 2, .microbatches = 2};
  static_assert(stretto::schedule::Search<nothing_to_try>);
  using step = stretto::pipeline<sizes, nothing_to_try>;
  CHECK(step::checked.why == stretto::reason::variant_out_of_range);
  const stretto::job_table table(2, 1);
  CHECK(best_variant(nothing_to_try{}, sizes, table.view()) == -1);
}
