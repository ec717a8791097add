// Schedules that keep a limit, with copies to the host put in between their jobs afterwards.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "stretto/check/all.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/emit_jobs.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/any.hpp"
#include "stretto/schedule/hanayo.hpp"
#include "stretto/schedule/v_1f1b.hpp"
#include "stretto/schedule/v_auto.hpp"
#include "stretto/schedule/v_half.hpp"
#include "stretto/schedule/v_min.hpp"
#include "stretto/schedule/zb_h1.hpp"
#include "stretto/schedule/zb_h2.hpp"
#include "stretto/schedule/zbv.hpp"
#include "stretto/schedule/zb_auto.hpp"
#include "stretto/schedule/zbv_greedy.hpp"

namespace {

namespace memory = stretto::memory;

constexpr memory::microbatch_window windows[] = {{1, 1}, {2, 1}, {1, 1, 1, 1}};

struct counts {
  int fitted = 0;
  int refused = 0;
};

//! A forward keeps 10, of which an offload moves `moved` in the time of a forward.
template <class Schedule>
void try_one(const Schedule& schedule, const stretto::shape& sizes, std::int64_t moved,
             std::int64_t limit, const memory::offload_window& window, counts& seen) {
  stretto::job_table table(sizes.ranks, sizes.chunks,
                           {.forward = 2,
                            .backward_input = 2,
                            .backward_weight = 2,
                            .memory_forward = 10,
                            .memory_backward_weight = -10,
                            .memory_recompute = 6,
                            .offload = 2,
                            .memory_offload = moved});
  table.limit.assign(static_cast<std::size_t>(sizes.ranks), limit);
  stretto::job_lists lists;
  const stretto::verdict answer =
      stretto::emit_jobs(schedule, sizes, {{}, window}, table.view(), lists);
  CAPTURE(sizes.ranks);
  CAPTURE(sizes.microbatches);
  CAPTURE(window.lag);
  CAPTURE(window.prefetch);
  CAPTURE(moved);
  CAPTURE(limit);
  if (!answer.ok()) {
    ++seen.refused;
    CHECK(answer.what == stretto::fault::over_limit);
    CHECK(answer.limit == limit);
    CHECK(answer.amount > limit);
    return;
  }
  ++seen.fitted;
  const stretto::verdict found =
      stretto::check::schedule({lists.rows(), stretto::place(schedule.placed(), sizes),
                                sizes.microbatches, sizes.slices, table.view(), false, {}});
  REQUIRE_MESSAGE(found.ok(), std::string(stretto::to_text(found).view()));
}

//! @param every  one of so many: not every search is quick
template <class Schedule>
void try_all(int chunks, counts& seen, int every = 1) {
  int number = 0;
  for (int ranks = 1; ranks <= 4; ++ranks)
    for (const int microbatches : {1, 6})
      for (int lag = 0; lag <= 2; ++lag)
        for (int prefetch = 0; prefetch <= 2; ++prefetch)
          for (const std::int64_t moved : {3, 8, 10})
            for (const std::int64_t limit : {9, 13, 20, 29, 45})
              for (const memory::microbatch_window& which : windows)
                if (number++ % every == 0)
                  try_one(Schedule{},
                          {.ranks = ranks, .microbatches = microbatches, .chunks = chunks}, moved,
                          limit, {which, lag, prefetch}, seen);
}

}  // namespace

TEST_CASE("what a schedule under a limit made of folded costs is within the limit") {
  counts seen;
  try_all<stretto::schedule::zb_auto>(1, seen);
  try_all<stretto::schedule::zbv_greedy>(2, seen);
  try_all<stretto::schedule::v_auto>(2, seen, 4);
  CHECK(seen.fitted > 1000);
  CHECK(seen.refused > 1000);
}

namespace {

//! What is made of a schedule with copies.
struct copied_step {
  bool is_made = false;
  bool is_sound = false;
  std::int64_t makespan = 0;
  std::int64_t peak = 0;  // of any rank
};

template <class Schedule>
copied_step step_with_copies(const Schedule& schedule, const stretto::shape& sizes,
                             const stretto::job_table& table,
                             const memory::offload_window& window) {
  stretto::job_lists lists;
  if (!stretto::emit_jobs(schedule, sizes, {{}, window}, table.view(), lists).ok()) return {};
  const stretto::replay_input input{.rows = lists.rows(),
                                    .where = stretto::place(schedule.placed(), sizes),
                                    .microbatches = sizes.microbatches,
                                    .costs = table.view()};
  copied_step made{.is_made = true};
  made.is_sound = stretto::check::schedule(input, stretto::check::lists_of::training).ok();
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
  made.makespan = stretto::measure(input, ranks).makespan;
  for (const stretto::rank_report& rank : ranks) made.peak = std::max(made.peak, rank.peak);
  return made;
}

//! How long a step with copies takes; -1: its lists do not keep the limit.
template <class Schedule>
std::int64_t length(const Schedule& schedule, const stretto::shape& sizes,
                    const stretto::job_table& table, const memory::offload_window& window) {
  const copied_step made = step_with_copies(schedule, sizes, table, window);
  return made.is_sound ? made.makespan : -1;
}

}  // namespace

TEST_CASE("with copies, too, a search is no longer than the closed forms that it knows") {
  using namespace stretto::schedule;
  std::mt19937 random(41);
  const auto up_to = [&](unsigned most) { return static_cast<int>(random() % most) + 1; };
  int held = 0;
  int copies_decide = 0;
  for (int round = 0; round < 80; ++round) {
    stretto::shape sizes{.ranks = up_to(5), .microbatches = up_to(10), .chunks = 2};
    const memory::offload_window window{
        {up_to(2), 1}, static_cast<int>(random() % 3), static_cast<int>(random() % 3)};
    const stretto::unit_costs costs{.forward = up_to(9),
                                    .backward_input = up_to(9),
                                    .backward_weight = up_to(9),
                                    .communication = up_to(3) - 1,
                                    .memory_forward = 10,
                                    .memory_backward_weight = -10,
                                    .offload = up_to(9),
                                    .memory_offload = up_to(10)};
    const stretto::job_table two(sizes.ranks, 2, costs);
    const stretto::job_table one(sizes.ranks, 1, costs);
    CAPTURE(round);
    const auto hold = [&](const auto& search, const auto& form, const stretto::job_table& table) {
      const std::int64_t theirs = length(form, sizes, table, window);
      if (theirs < 0) return;
      CAPTURE(std::string(form.name));
      ++held;
      const std::int64_t ours = length(search, sizes, table, window);
      CHECK(ours >= 0);
      CHECK(ours <= theirs);
      CHECK(length(any(search), sizes, table, window) == ours);
      // Not so of the order that is the shortest without copies.
      auto blind = search;
      blind.variant = best_variant(search, sizes, table.view());
      copies_decide += length(blind, sizes, table, window) > ours;
    };
    hold(zbv_greedy{}, zbv{}, two);
    hold(v_auto{}, zbv{}, two);
    hold(v_auto{}, v_half{}, two);
    hold(v_auto{}, v_min{}, two);
    hold(v_auto{}, v_1f1b{}, two);
    hold(v_auto{}, hanayo{}, two);
    sizes.chunks = 1;
    hold(zb_auto{}, zb_h1{}, one);
    hold(zb_auto{}, zb_h2{}, one);
  }
  CHECK(held > 400);
  CHECK(copies_decide > 100);
}

namespace {

//! The most memory of any rank in lists made within a limit, which is what they must keep then;
//! -1: there are none.
template <class Schedule>
std::int64_t peak(const Schedule& schedule, const stretto::shape& sizes, stretto::job_table table,
                  std::int64_t limit, const memory::offload_window& window) {
  table.limit.assign(static_cast<std::size_t>(sizes.ranks), limit);
  const copied_step made = step_with_copies(schedule, sizes, table, window);
  if (!made.is_made) return -1;
  CHECK(made.is_sound);
  return made.peak;
}

}  // namespace

TEST_CASE("a limit is not refused that an order keeps which the search makes without one") {
  using namespace stretto::schedule;
  std::mt19937 random(7);
  const auto up_to = [&](unsigned most) { return static_cast<int>(random() % most) + 1; };
  int tight = 0;
  const auto hold = [&](const auto& search, int chunks) {
    const stretto::shape sizes{.ranks = up_to(3), .microbatches = up_to(8), .chunks = chunks};
    const memory::offload_window window{
        {1, up_to(2)}, static_cast<int>(random() % 3), static_cast<int>(random() % 3)};
    const stretto::job_table table(sizes.ranks, chunks,
                                   {.forward = up_to(9) - 1,
                                    .backward_input = up_to(9),
                                    .backward_weight = up_to(9),
                                    .memory_forward = 4,
                                    .memory_backward_weight = -4,
                                    .offload = up_to(4) - 1,
                                    .memory_offload = up_to(6)});
    CAPTURE(std::string(search.name));
    const std::int64_t free = peak(search, sizes, table, stretto::unlimited, window);
    REQUIRE(free >= 0);
    CHECK(peak(search, sizes, table, free, window) >= 0);
    tight += peak(search, sizes, table, free - 1, window) < 0;
    auto one = search;
    one.variant = 0;
    const std::int64_t alone = peak(one, sizes, table, stretto::unlimited, window);
    if (alone >= 0) CHECK(peak(one, sizes, table, alone, window) >= 0);
  };
  for (int round = 0; round < 30; ++round) {
    hold(zb_auto{}, 1);
    hold(zbv_greedy{}, up_to(2));
    hold(v_auto{}, 2);
  }
  CHECK(tight > 10);
}

namespace {

struct copying : stretto::memory::release_early {
  constexpr stretto::unit_costs costs() const {
    return {.forward = 5, .backward_input = 6, .backward_weight = 4, .offload = 4};
  }
  constexpr memory::offload_window offload() const { return memory::offload_all; }
};
//! Within a limit that has no room for copies that are never there at once.
struct copying_tightly : stretto::memory::release_early {
  constexpr stretto::unit_costs costs() const {
    return {.forward = 0, .backward_input = 2, .backward_weight = 7, .memory_offload = 5};
  }
  constexpr memory::offload_window offload() const { return memory::offload_all; }
  constexpr std::int64_t limit() const { return 7; }
};

template <class Step>
void chosen_alike() {
  static_assert(stretto::valid<Step>);
  stretto::job_lists lists;
  REQUIRE(stretto::emit_jobs(stretto::schedule::zbv_greedy{}, Step::sizes,
                             {{}, memory::offload_all}, Step::costs(), lists)
              .ok());
  for (int rank = 0; rank < Step::sizes.ranks; ++rank)
    CHECK(std::ranges::equal(lists.rows().row(rank), Step::jobs().row(rank)));
}

}  // namespace

TEST_CASE("with copies the same order is chosen at compile time as at run time") {
  chosen_alike<
      stretto::pipeline<stretto::shape{.ranks = 3, .microbatches = 5, .chunks = 2},
                        stretto::schedule::zbv_greedy, stretto::assignment::unassigned, copying>>();
  chosen_alike<stretto::pipeline<stretto::shape{.ranks = 1, .microbatches = 8},
                                 stretto::schedule::zbv_greedy, stretto::assignment::unassigned,
                                 copying_tightly>>();
}
