// The two warm-ups of interleaved zero bubble.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "laws/order_laws.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/lowering/streams/serial.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "stretto/schedule/interleaved_zb.hpp"
#include "stretto/schedule/zb_h1.hpp"
#include "stretto/schedule/zb_h2.hpp"

namespace {

using laws::for_each_shape;
using laws::same;
using laws::words;
using stretto::shape;
using namespace stretto::schedule;

constexpr interleaved_zb half{};
constexpr interleaved_zb standard{.warmup = warmup_kind::standard};

struct measured {
  std::int64_t makespan = 0;
  std::vector<std::int64_t> peaks;
};

//! A forward takes one unit of memory, a backward for the weights gives it back.
template <class Schedule>
measured measure(const Schedule& schedule, const shape& sizes, const stretto::unit_costs& costs) {
  const stretto::job_lists lists = laws::emitted(schedule, sizes);
  const stretto::job_table table(sizes.ranks, sizes.chunks, costs);
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
  const stretto::report all = stretto::measure({.rows = lists.rows(),
                                                .where = stretto::place(schedule.placed(), sizes),
                                                .microbatches = sizes.microbatches,
                                                .slices = sizes.slices,
                                                .costs = table.view()},
                                               ranks);
  REQUIRE(all.answer.ok());
  measured made{.makespan = all.makespan, .peaks = {}};
  for (const auto& rank : ranks) made.peaks.push_back(rank.peak);
  return made;
}

//! One slice, and some numbers of them.
template <class Visitor>
void for_each_sliced(int ranks, int microbatches, int chunks, const Visitor& visit) {
  for_each_shape(ranks, microbatches, chunks, [&](shape sizes) {
    for (const int slices : {1, 2, 3, 5}) {
      sizes.slices = slices;
      INFO(words(sizes));
      visit(sizes);
    }
  });
}

}  // namespace

TEST_CASE("interleaved_zb: one chunk is ZB-H1, with the standard warm-up ZB-H2") {
  for_each_sliced(9, 24, 1, [](const shape& sizes) {
    CHECK(same(laws::emitted(half, sizes).rows(), laws::emitted(zb_h1{}, sizes).rows()));
    CHECK(same(laws::emitted(standard, sizes).rows(), laws::emitted(zb_h2{}, sizes).rows()));
  });
}

TEST_CASE("interleaved_zb: the standard warm-up keeps what interleaved 1F1B's first rank does") {
  for_each_sliced(8, 20, 4, [](const shape& sizes) {
    const std::int64_t first = measure(interleaved{}, sizes, {}).peaks.front();
    const measured full = measure(standard, sizes, {});
    const measured light = measure(half, sizes, {});
    CHECK(full.peaks.front() == first);
    for (std::size_t rank = 0; rank < full.peaks.size(); ++rank) {
      CHECK(full.peaks[rank] <= first);
      CHECK(light.peaks[rank] <= full.peaks[rank]);
    }
  });
}

TEST_CASE("interleaved_zb: with the standard warm-up no longer than interleaved 1F1B") {
  // With the half one it is often longer where messages take time.
  const std::array costs{
      stretto::unit_costs{.communication = 0}, stretto::unit_costs{.communication = 2},
      stretto::unit_costs{.forward = 4, .backward_input = 8, .backward_weight = 5,
                          .communication = 8},
      stretto::unit_costs{.forward = 2, .backward_input = 9, .backward_weight = 1,
                          .communication = 3},
      stretto::unit_costs{.forward = 9, .backward_input = 2, .backward_weight = 10,
                          .communication = 1}};
  long longer = 0;
  for_each_sliced(8, 20, 4, [&](const shape& sizes) {
    for (const auto& each : costs) {
      const std::int64_t whole = measure(interleaved{}, sizes, each).makespan;
      CHECK(measure(standard, sizes, each).makespan <= whole);
      longer += measure(half, sizes, each).makespan > whole;
    }
  });
  CHECK(longer > 1000);
  constexpr stretto::unit_costs told{
      .forward = 4, .backward_input = 8, .backward_weight = 5, .communication = 8};
  constexpr shape sizes{.ranks = 8, .microbatches = 26, .chunks = 2};
  CHECK(measure(interleaved{}, sizes, told).makespan == 1269);
  CHECK(measure(half, sizes, told).makespan == 1560);
  CHECK(measure(standard, sizes, told).makespan == 1139);
}

TEST_CASE("interleaved_zb: plans of the standard warm-up keep every rule") {
  for_each_sliced(4, 7, 3, [](const shape& sizes) {
    const stretto::job_table table(sizes.ranks, sizes.chunks);
    for (int group = 0; group <= sizes.microbatches; ++group) {
      const interleaved_zb made{.group = group, .warmup = warmup_kind::standard};
      if (!made.supports(sizes)) continue;
      INFO("group ", group);
      CHECK(stretto::planned(made, sizes, table.view(), stretto::overlap::separate{}).answer() ==
            stretto::verdict{});
      CHECK(stretto::planned(made, sizes, table.view(), stretto::overlap::serial{}).answer() ==
            stretto::verdict{});
    }
  });
}

TEST_CASE("each of the interleaved schedules has its warm-ups") {
  constexpr auto refused = stretto::reason::warmup_not_served;
  constexpr shape sizes{.ranks = 4, .microbatches = 8, .chunks = 2};
  for (auto warmup : {warmup_kind::standard, warmup_kind::half, warmup_kind::paired,
                      warmup_kind::all})
    CHECK(interleaved{.warmup = warmup}.supports(sizes).ok());
  CHECK(interleaved_zb{.warmup = warmup_kind::all}.supports(sizes).why == refused);
  CHECK(interleaved_zb{.warmup = warmup_kind::paired}.supports(sizes).why == refused);
  CHECK(standard.supports(sizes).ok());
  CHECK(interleaved_zb{.group = 3, .warmup = warmup_kind::standard}.supports(sizes).why ==
        stretto::reason::group_below_ranks);
}
