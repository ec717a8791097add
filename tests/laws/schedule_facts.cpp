// What is known of each schedule in closed form, and that interleaved 1F1B never hangs.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "laws/order_laws.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/all.hpp"

namespace {

using laws::for_each_shape;
using laws::same;
using laws::words;
using stretto::placement_kind;
using stretto::shape;
using namespace stretto::schedule;

//! Makespan and per-rank peak (a forward takes one unit, a backward gives it back).
struct measured {
  stretto::report total;
  std::vector<stretto::rank_report> ranks;
};

template <class Schedule>
measured measure(const Schedule& schedule, const shape& sizes, std::int64_t forward,
                 std::int64_t backward, std::int64_t weight = 0, std::int64_t hop = 0) {
  const stretto::job_lists lists = laws::emitted(schedule, sizes);
  const stretto::job_table table(
      sizes.ranks, stretto::place(schedule.placed(), sizes).chunks,
      {.forward = forward,
       .backward_input = backward,
       .backward_weight = weight,
       .communication = hop});
  measured made;
  made.ranks.resize(static_cast<std::size_t>(sizes.ranks));
  made.total = stretto::measure({.rows = lists.rows(),
                                 .where = stretto::place(schedule.placed(), sizes),
                                 .microbatches = sizes.microbatches,
                                 .slices = sizes.slices,
                                 .costs = table.view()},
                                made.ranks);
  REQUIRE(made.total.answer.ok());
  return made;
}

}  // namespace

namespace {

//! How many orders of interleaved a shape has; each of them runs to its end.
long live_orders(const shape& sizes) {
  long orders = 0;
  const stretto::job_table table(sizes.ranks, sizes.chunks);
  for (int group = 0; group <= sizes.microbatches; ++group)
    for (auto remainder : {remainder_kind::even, remainder_kind::first, remainder_kind::last})
      for (int other = 0; other < 6; ++other) {
        const interleaved schedule{
            .group = group,
            .remainder = remainder,
            .warmup = other < 2   ? warmup_kind::standard
                      : other < 4 ? warmup_kind::paired
                                  : warmup_kind::half,
            .backwards = other % 2 == 0 ? backwards_kind::groups : backwards_kind::early};
        if (!schedule.supports(sizes)) continue;
        INFO(words(sizes), " group ", group, " remainder ", static_cast<int>(remainder), ", ",
             other);
        const auto lists = laws::emitted(schedule, sizes);
        const auto answer = stretto::replay({.rows = lists.rows(),
                                             .where = stretto::place(placement_kind::looped, sizes),
                                             .microbatches = sizes.microbatches,
                                             .slices = sizes.slices,
                                             .costs = table.view()});
        REQUIRE(answer == stretto::verdict{});
        ++orders;
      }
  return orders;
}

}  // namespace

TEST_CASE("interleaved: live whatever the group, the remainder and the warm-up") {
  long orders = 0;
  for_each_shape(10, 40, 5, [&](const shape& sizes) { orders += live_orders(sizes); });
  CHECK(orders == 3 * 208950);
  orders = 0;
  for_each_shape(9, 12, 4, [&](shape sizes) {
    for (sizes.slices = 2; sizes.slices <= 9; ++sizes.slices) orders += live_orders(sizes);
  });
  CHECK(orders == 435228);
}

TEST_CASE("interleaved: with nothing left over, the remainder's place does not matter") {
  for_each_shape(9, 40, 4, [](const shape& sizes) {
    if (sizes.microbatches % std::min(sizes.ranks, sizes.microbatches) != 0) return;
    INFO(words(sizes));
    const auto even = laws::emitted(interleaved{}, sizes);
    for (auto remainder : {remainder_kind::first, remainder_kind::last})
      for (auto backwards : {backwards_kind::groups, backwards_kind::early}) {
        const interleaved other{.remainder = remainder, .backwards = backwards};
        CHECK(same(even.rows(), laws::emitted(other, sizes).rows()));
      }
  });
}

TEST_CASE("interleaved: what fills no group keeps the least spread evenly over the others") {
  const auto told = [](const shape& sizes, remainder_kind remainder) {
    const auto made = measure(interleaved{.remainder = remainder}, sizes, 1, 2);
    std::int64_t peak = 0;
    for (const auto& rank : made.ranks) peak = std::max(peak, rank.peak);
    return std::pair{made.total.makespan, peak};
  };
  int less = 0;
  for_each_shape(9, 40, 4, [&](const shape& sizes) {
    INFO(words(sizes));
    const auto even = told(sizes, remainder_kind::even);
    const auto first = told(sizes, remainder_kind::first);
    CHECK(even.first == first.first);
    CHECK(even.second <= first.second);
    less += even.second < first.second;
  });
  CHECK(less > 300);
}

//! What a step takes with uniform costs, and the most that a rank keeps.
template <class Schedule>
std::pair<std::int64_t, std::int64_t> length_and_peak(const Schedule& schedule, const shape& sizes,
                                                      const stretto::unit_costs& costs) {
  const auto lists = laws::emitted(schedule, sizes);
  const stretto::job_table table(sizes.ranks, sizes.chunks, costs);
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
  const auto made = stretto::measure({lists.rows(),
                                      stretto::place(placement_kind::looped, sizes),
                                      sizes.microbatches, sizes.slices, table.view()},
                                     ranks);
  REQUIRE(made.answer.ok());
  std::int64_t peak = 0;
  for (const auto& one : ranks) peak = std::max(peak, one.peak);
  return {made.makespan, peak};
}

TEST_CASE("early backwards of the last chunk: never longer, mostly shorter, and never more kept") {
  std::mt19937 random(8);
  const auto between = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  int compared = 0, shorter = 0;
  const auto check = [&](auto by_groups, const shape& sizes, const stretto::unit_costs& costs) {
    if (!by_groups.supports(sizes)) return;
    auto early = by_groups;
    early.backwards = backwards_kind::early;
    const auto [length, peak] = length_and_peak(by_groups, sizes, costs);
    const auto [early_length, early_peak] = length_and_peak(early, sizes, costs);
    CHECK(early_length <= length);
    CHECK(early_peak == peak);
    ++compared;
    shorter += early_length < length ? 1 : 0;
  };
  for (int round = 0; round < 8000; ++round) {
    shape sizes{.ranks = between(2, 8), .microbatches = 1, .chunks = between(2, 4)};
    sizes.microbatches = between(1, 5 * sizes.ranks + 3);
    if (round % 4 == 0) sizes.slices = static_cast<std::int16_t>(between(2, 4));
    const stretto::unit_costs costs{.forward = between(1, 12),
                                    .backward_input = between(1, 12),
                                    .backward_weight = between(1, 12),
                                    .communication = round % 2 == 0 ? 0 : between(1, 10),
                                    .memory_forward = 1,
                                    .memory_backward_weight = -1};
    const int group = round % 3 == 0 ? between(1, sizes.microbatches) : 0;
    INFO(words(sizes), " group ", group, " round ", round);
    const auto remainder = static_cast<remainder_kind>(between(0, 2));
    check(interleaved{.group = group, .remainder = remainder}, sizes, costs);
    check(paired_1f1b{.group = group, .remainder = remainder}, sizes, costs);
    check(interleaved_zb{.group = group,
                         .warmup = round % 2 == 0 ? warmup_kind::half : warmup_kind::standard},
          sizes, costs);
  }
  CHECK(compared > 15000);
  CHECK(4 * shorter > compared / 2);
}

TEST_CASE("interleaved: without hops the half warm-up is never longer, and keeps less") {
  std::mt19937 random(9);
  const auto between = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  int compared = 0, less = 0;
  for (int round = 0; round < 8000; ++round) {
    shape sizes{.ranks = between(1, 8), .microbatches = 1, .chunks = between(1, 4)};
    sizes.microbatches = between(1, 5 * sizes.ranks);
    const stretto::unit_costs costs{.forward = between(1, 12),
                                    .backward_input = between(1, 12),
                                    .backward_weight = between(1, 12),
                                    .memory_forward = 1,
                                    .memory_backward_weight = -1};
    interleaved schedule{.group = round % 3 == 0 ? between(1, sizes.microbatches) : 0,
                         .remainder = static_cast<remainder_kind>(between(0, 2)),
                         .backwards = static_cast<backwards_kind>(between(0, 1))};
    if (!schedule.supports(sizes)) continue;
    INFO(words(sizes), " group ", schedule.group, " round ", round);
    const auto [length, peak] = length_and_peak(schedule, sizes, costs);
    schedule.warmup = warmup_kind::half;
    const auto [half_length, half_peak] = length_and_peak(schedule, sizes, costs);
    CHECK(half_length <= length);
    CHECK(half_peak <= peak);
    ++compared;
    less += half_peak < peak ? 1 : 0;
  }
  CHECK(compared > 5000);
  CHECK(3 * less > 2 * compared);
}

TEST_CASE("interleaved with early backwards is as short as Paddle's for unbalanced micro-batches") {
  // Its order, transcribed, in the same replay: ranks, micro-batches, F, I + W, hop; makespan.
  struct known {
    int ranks, microbatches, forward, input, weight, hop;
    std::int64_t theirs;
  };
  for (const known& one : {known{6, 15, 4, 5, 3, 4, 472}, known{4, 14, 4, 5, 3, 4, 404},
                           known{3, 7, 10, 12, 8, 5, 505}}) {
    const shape sizes{.ranks = one.ranks, .microbatches = one.microbatches, .chunks = 2};
    const stretto::unit_costs costs{.forward = one.forward,
                                    .backward_input = one.input,
                                    .backward_weight = one.weight,
                                    .communication = one.hop};
    const auto length = [&](remainder_kind remainder, backwards_kind backwards) {
      return length_and_peak(interleaved{.remainder = remainder, .backwards = backwards}, sizes,
                             costs)
          .first;
    };
    CHECK(length(remainder_kind::first, backwards_kind::early) == one.theirs);
    for (auto remainder : {remainder_kind::even, remainder_kind::first, remainder_kind::last})
      CHECK(length(remainder, backwards_kind::groups) > one.theirs);
  }
}

TEST_CASE("interleaved with a short group last departs from the plain warm-up only to stay live") {
  // What Paddle's static graph emits: the standard warm-up, then rounds to the end.
  const auto plain_order = [](const shape& sizes) {
    stretto::job_lists lists(sizes.ranks, interleaved{}.capacity(sizes));
    auto sink = lists.sink();
    const auto groups = group_microbatches(sizes, 0, remainder_kind::last);
    const int v = sizes.chunks;
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      const auto push = [&](int step, bool ahead) {
        const auto [chunk, microbatch, slice] = groups.at(step);
        sink.push(rank, {(ahead ? chunk : v - 1 - chunk) * sizes.ranks + rank, microbatch, slice,
                         ahead ? stretto::job_kind::forward : stretto::job_kind::backward});
      };
      const int warmup =
          std::min(groups.steps(), (v - 1) * groups.first + 2 * (sizes.ranks - 1 - rank));
      for (int k = 0; k < groups.steps() + warmup; ++k) {
        if (k < groups.steps()) push(k, true);
        if (k >= warmup) push(k - warmup, false);
      }
    }
    return lists;
  };
  int kept = 0;
  int mended = 0;
  for_each_shape(9, 40, 4, [&](const shape& sizes) {
    INFO(words(sizes));
    const auto plain = plain_order(sizes);
    const auto ours = laws::emitted(interleaved{.remainder = remainder_kind::last}, sizes);
    const bool live = laws::broken_law(plain.rows(), stretto::place(placement_kind::looped, sizes),
                                       sizes, false) == "";
    CHECK(same(plain.rows(), ours.rows()) == live);
    ++(live ? kept : mended);
  });
  CHECK(kept > 0);
  CHECK(mended > 0);
}

TEST_CASE("gpipe and 1f1b: the makespan is (m + p - 1)(f + b); 1f1b keeps min(m, p - r) alive") {
  for_each_shape(9, 40, 1, [](const shape& sizes) {
    INFO(words(sizes));
    for (auto [f, b] : {std::pair{1, 1}, {1, 2}, {2, 3}, {3, 1}}) {
      const std::int64_t expected = (sizes.microbatches + sizes.ranks - 1) * (f + b);
      const measured filled = measure(gpipe{}, sizes, f, b);
      const measured steady = measure(one_f_one_b{}, sizes, f, b);
      CHECK(filled.total.makespan == expected);
      CHECK(steady.total.makespan == expected);
      for (int rank = 0; rank < sizes.ranks; ++rank) {
        const auto at = static_cast<std::size_t>(rank);
        CHECK(filled.ranks[at].peak == sizes.microbatches);
        CHECK(steady.ranks[at].peak == std::min(sizes.microbatches, sizes.ranks - rank));
      }
    }
  });
}

TEST_CASE("kfkb: 1f1b's makespan without hops; k (p - r) alive; 1f1b for k = 1, gpipe for k = m") {
  for_each_shape(9, 40, 1, [](const shape& sizes) {
    const auto [p, m, v, slices] = sizes;
    INFO(words(sizes));
    const auto ours = [&](int group) { return laws::emitted(kfkb{.group = group}, sizes); };
    CHECK(same(ours(1).rows(), laws::emitted(one_f_one_b{}, sizes).rows()));
    CHECK(same(ours(m).rows(), laws::emitted(gpipe{}, sizes).rows()));
    CHECK(same(ours(0).rows(), ours(std::min(m, 2)).rows()));
    for (int k = 1; k <= m; k += 1 + k / 4)
      for (auto [f, b] : {std::pair{1, 1}, {1, 2}, {2, 3}, {3, 1}}) {
        const kfkb last{.group = k, .remainder = remainder_kind::last};
        const measured made = measure(last, sizes, f, b);
        if (m % k == 0) CHECK(made.total.makespan == (m + p - 1) * (f + b));
        for (int rank = 0; rank < p; ++rank)
          CHECK(made.ranks[static_cast<std::size_t>(rank)].peak == std::min(m, k * (p - rank)));
      }
  });
}

TEST_CASE("kfkb: hops cost 2 (p - 1) of them while two take no longer than a group but for one") {
  for (int p = 2; p <= 8; ++p)
    for (int k = 1; k <= 6; ++k)
      for (auto [f, b] : {std::pair{1, 1}, {1, 2}, {2, 3}, {3, 1}}) {
        const shape sizes{p, 2 * p * k, 1};
        const int hidden = (k - 1) * (f + b) / 2;
        INFO(words(sizes), " k ", k, " f ", f, " b ", b);
        const auto lost = [&](int hop) {
          const measured made = measure(kfkb{.group = k}, sizes, f, b, 0, hop);
          return made.total.makespan - (sizes.microbatches + p - 1) * (f + b) - 2 * (p - 1) * hop;
        };
        for (int hop = 0; hop <= hidden; ++hop) CHECK(lost(hop) == 0);
        CHECK(lost(hidden + 1) > 0);
      }
}

TEST_CASE("seq_1f1b: the bubble is 1f1b's of one slice; at most p - r + k - 1 slices are alive") {
  for_each_shape(9, 14, 1, [](shape sizes) {
    for (sizes.slices = 1; sizes.slices <= 7; ++sizes.slices) {
      INFO(words(sizes));
      const int all = sizes.microbatches * sizes.slices;
      for (auto [f, b] : {std::pair{1, 1}, {1, 2}, {2, 3}, {3, 1}}) {
        const measured made = measure(seq_1f1b{}, sizes, f, b);
        CHECK(made.total.makespan == (all + sizes.ranks - 1) * (f + b));
        for (int rank = 0; rank < sizes.ranks; ++rank)
          CHECK(made.ranks[static_cast<std::size_t>(rank)].peak ==
                std::min(all, sizes.ranks - rank + sizes.slices - 1));
      }
    }
    sizes.slices = 1;
    CHECK(
        same(laws::emitted(seq_1f1b{}, sizes).rows(), laws::emitted(one_f_one_b{}, sizes).rows()));
  });
}

TEST_CASE(
    "interleaved in slices: the bubble is a chunk's of one slice, and memory shrinks with it") {
  for_each_shape(9, 12, 4, [](shape sizes) {
    for (sizes.slices = 1; sizes.slices <= 7; ++sizes.slices) {
      const auto [p, m, v, k] = sizes;
      const int group = least_group(sizes);
      if (m % group != 0 || group * k < p) continue;
      INFO(words(sizes));
      for (auto [f, b] : {std::pair{1, 1}, {1, 2}, {2, 3}, {3, 1}}) {
        const measured made = measure(interleaved{}, sizes, f, b);
        CHECK(made.total.makespan == (m * v * k + p - 1) * (f + b));
        for (int rank = 0; rank < p; ++rank)
          CHECK(made.ranks[static_cast<std::size_t>(rank)].peak ==
                std::min(m * v * k, (v - 1) * group * k + 2 * (p - 1 - rank) + k));
        CHECK(measure(inference{}, sizes, f, b).total.makespan == (m * v * k + p - 1) * f);
      }
      const measured split = measure(interleaved_zb{}, sizes, 1, 1, 1);
      if (m >= 2 * group) CHECK(split.total.makespan == 3 * m * v * k + p - 1);
      for (const auto& rank : split.ranks)
        CHECK(rank.peak <= std::min(m * v * k, (v - 1) * group * k + p + k - 1));
    }
  });
}

TEST_CASE("fill and drain, in slices: the bubble is that of one slice") {
  for_each_shape(9, 14, 1, [](shape sizes) {
    for (sizes.slices = 1; sizes.slices <= 7; ++sizes.slices) {
      INFO(words(sizes));
      const int all = sizes.microbatches * sizes.slices;
      for (auto [f, b] : {std::pair{1, 1}, {1, 2}, {2, 3}, {3, 1}}) {
        CHECK(measure(gpipe{}, sizes, f, b).total.makespan == (all + sizes.ranks - 1) * (f + b));
        CHECK(measure(looped_bfs{}, sizes, f, b).total.makespan ==
              (all + sizes.ranks - 1) * (f + b));
      }
    }
  });
}

TEST_CASE("controllable memory: what the rank keeps that keeps most, in activations of a chunk") {
  const auto most = [](const auto& schedule, const shape& sizes) {
    std::int64_t kept = 0;
    for (const auto& rank : measure(schedule, sizes, 1, 1).ranks) kept = std::max(kept, rank.peak);
    return kept;
  };
  for_each_shape(12, 40, 2, [&](const shape& sizes) {
    const auto [p, m, v, slices] = sizes;
    if (v != 2) return;
    INFO(words(sizes));
    const auto keeps = [&](const auto& schedule, int promised) {
      CHECK(most(schedule, sizes) <= std::min(promised, 2 * m));
      if (m >= 2 * p) CHECK(most(schedule, sizes) == promised);
    };
    keeps(v_1f1b{}, 2 * (2 * p / 3 + 1));
    keeps(v_half{}, 2 * ((p + 2) / 2));
    keeps(v_min{}, 2 * ((p + 4) / 3));
  });
}

TEST_CASE("zb_h1: the bubble, and no more alive than on 1F1B's first rank") {
  for (int p = 1; p <= 6; ++p)
    for (int m = p; m <= 3 * p + 1; ++m)
      for (const int f : {1, 2, 5})
        for (const int b : {1, 3, 8})
          for (const int w : {0, 1, 2, 4, 7, 9}) {
            INFO(words({p, m, 1}), " f=", f, " b=", b, " w=", w);
            const measured made = measure(zb_h1{}, {p, m, 1}, f, b, w);
            const int bubble = (p - 1) * (f + b - std::min({f, b, w}));
            CHECK(made.total.makespan == m * (f + b + w) + bubble);
            for (const auto& rank : made.ranks) CHECK(rank.peak <= p);
            for (const int k : {2, 3, 5}) {
              const measured sliced = measure(zb_h1{}, {p, m, 1, k}, f, b, w);
              CHECK(sliced.total.makespan == m * k * (f + b + w) + bubble);
              for (const auto& rank : sliced.ranks) CHECK(rank.peak <= p + k - 1);
            }
          }
}

TEST_CASE(
    "grouped: what it keeps and takes with half the ranks or more a group; less saves nothing") {
  for (int p = 1; p <= 9; ++p)
    for (int v = 1; v <= 4; ++v) {
      const auto most = [&](int group, int m) {
        std::int64_t kept = 0;
        for (const auto& rank : measure(grouped{.group = group}, {p, m, v}, 1, 1, 1).ranks)
          kept = std::max(kept, rank.peak);
        return kept;
      };
      const int half = (p + 1) / 2;
      for (int g = 1; g <= p; ++g) {
        INFO(words({p, 6 * p, v}), " group ", g);
        if (g < half) {
          CHECK(most(g, 6 * p) >= most(half, 6 * p));
          continue;
        }
        CHECK(most(g, 6 * p) == g * (v - 1) + p);
        for (int m = 1; m <= 3 * p; ++m) CHECK(most(g, m) <= g * (v - 1) + p);
        const auto takes = [&](int group) {
          return measure(grouped{.group = group}, {p, p * g, v}, 1, 1, 1).total.makespan;
        };
        CHECK(takes(g) == takes(p) + (p - g) * (v - 1));
      }
    }
}

TEST_CASE("hanayo: never more than 1f1b's memory; p - 1 forwards longer than interleaved, p | m") {
  for_each_shape(9, 40, 6, [](const shape& sizes) {
    const auto [p, m, v, slices] = sizes;
    INFO(words(sizes));
    const measured made = measure(hanayo{}, sizes, 1, 2);
    for (int rank = 0; rank < p; ++rank)
      CHECK(made.ranks[static_cast<std::size_t>(rank)].peak <=
            (v == 1 || v % 2 == 0 ? std::min(m, p) * v : std::min(m * v, p * (v + 1))));
    // The same model in one chunk a rank.
    const std::int64_t plain = 3 * v * (m + p - 1);
    CHECK(made.total.makespan <= plain);
    if (v % 2 == 0 && m % p == 0) CHECK(made.total.makespan == (m * v + p - 1) * 3 + p - 1);
    if (v == 1) CHECK(made.total.makespan == plain);
    if (v == 1)
      CHECK(
          same(laws::emitted(hanayo{}, sizes).rows(), laws::emitted(one_f_one_b{}, sizes).rows()));
  });
}

TEST_CASE("hanayo: no order of whole backwards on a wave of two chunks is shorter, p <= 4") {
  // Optima proven by a SAT solver for f = b = w; the first two hold for 1F1B's memory, p v chunk
  // activations, the others for that and more.
  CHECK(measure(hanayo{}, {2, 2, 2}, 1, 2).total.makespan == 16);
  CHECK(measure(hanayo{}, {2, 4, 2}, 1, 2).total.makespan == 28);
  CHECK(measure(hanayo{}, {3, 3, 2}, 1, 2).total.makespan == 26);
  CHECK(measure(hanayo{}, {4, 4, 2}, 1, 2).total.makespan == 36);
}

TEST_CASE("interleaved: where p divides m the bubble is (p - 1) / v of one micro-batch's work") {
  for_each_shape(9, 40, 4, [](const shape& sizes) {
    const auto [p, m, v, slices] = sizes;
    if (m % p != 0) return;
    INFO(words(sizes));
    for (auto [f, b] : {std::pair{1, 1}, {1, 2}, {2, 3}, {3, 1}}) {
      const measured made = measure(interleaved{}, sizes, f, b);
      // Idle (p - 1)(f + b) with f and b of one chunk: 1/v of the micro-batch's work on the rank.
      CHECK(made.total.makespan == (m * v + p - 1) * (f + b));
      for (int rank = 0; rank < p; ++rank)
        CHECK(made.ranks[static_cast<std::size_t>(rank)].peak ==
              std::min(m * v, (v - 1) * p + 2 * (p - 1 - rank) + 1));
    }
    CHECK(measure(inference{}, sizes, 3, 1).total.makespan == (m * v + p - 1) * 3);
  });
}

TEST_CASE("inference on a wave: mostly as short as any order, never longer than by groups") {
  // Forwards alone of DualPipeV's authors (deepseek-ai/DualPipe, dualpipev.py): p, m, makespan.
  for (const auto& [p, m, theirs] :
       {std::tuple{2, 4, 10}, std::tuple{3, 6, 16}, std::tuple{4, 8, 22}, std::tuple{8, 16, 46}})
    CHECK(measure(inference{.placement = placement_kind::wave}, {p, m, 2}, 1, 1).total.makespan ==
          theirs);
  const auto by_groups = [](const shape& sizes) {  // the order for looped stages
    stretto::job_lists lists(sizes.ranks, inference{}.capacity(sizes));
    auto sink = lists.sink();
    const auto groups = group_microbatches(sizes, 0, remainder_kind::even);
    const auto where = stretto::place(placement_kind::wave, sizes);
    for (int rank = 0; rank < sizes.ranks; ++rank)
      for (int k = 0; k < groups.steps(); ++k) {
        const auto [chunk, microbatch, slice] = groups.at(k);
        sink.push(rank, {where.stage_of(rank, chunk), microbatch, slice});
      }
    return lists;
  };
  for_each_shape(7, 24, 5, [&](const shape& sizes) {
    const auto [p, m, v, slices] = sizes;
    for (const int hop : {0, 1, 3}) {
      INFO(words(sizes), " hop=", hop);
      const stretto::job_table table(p, v, {.forward = 2, .communication = hop});
      const auto makespan = [&](const stretto::job_lists& lists) {
        std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(p));
        const auto made = stretto::measure({.rows = lists.rows(),
                                            .where = stretto::place(placement_kind::wave, sizes),
                                            .microbatches = m,
                                            .costs = table.view()},
                                           ranks);
        REQUIRE(made.answer.ok());
        return made.makespan;
      };
      stretto::job_lists lists(p, m * v);
      auto sink = lists.sink();
      REQUIRE(inference{.placement = placement_kind::wave}.emit(sizes, table.view(), sink).ok());
      CHECK(makespan(lists) <= makespan(by_groups(sizes)));
      // A rank's work, from when the first can be there and to when the last is through; or the
      // way of the last to enter.
      const int ends = v % 2 == 0 ? 2 * (p - 1) : p - 1;
      if (hop == 0 && (v <= 2 || m >= 2 * p - 1))
        CHECK(makespan(lists) == 2 * std::max(m * v + ends, m - 1 + p * v));
    }
  });
}

TEST_CASE("inference on a wave is live also where forwards take no time") {
  for_each_shape(4, 6, 4, [](const shape& sizes) {
    INFO(words(sizes));
    const stretto::job_table table(sizes.ranks, sizes.chunks, {.forward = 0});
    stretto::job_lists lists(sizes.ranks, sizes.microbatches * sizes.chunks);
    auto sink = lists.sink();
    REQUIRE(inference{.placement = placement_kind::wave}.emit(sizes, table.view(), sink).ok());
    CHECK(laws::broken_law(lists.rows(), stretto::place(placement_kind::wave, sizes), sizes,
                           true) == "");
  });
}

TEST_CASE("chimera: less than half of 1F1B's bubble, with no more activations") {
  for (int p = 2; p <= 12; p += 2)
    for (int m = 1; m <= 5 * p; ++m)
      for (const auto& [f, b] : {std::pair{1, 1}, {1, 2}, {2, 1}, {10, 23}, {7, 7}}) {
        INFO(words({p, m, 1}), " f=", f, " b=", b);
        const auto made = measure(chimera{}, {p, m, 1}, f, b);
        for (const auto& rank : made.ranks) CHECK(rank.peak <= p);
        CHECK(made.total.makespan <= measure(one_f_one_b{}, {p, m, 1}, f, b).total.makespan);
        if (m % 2 == 0 && m >= p)
          CHECK(made.total.makespan == m * (f + b) + (p - 2) * std::max(f, b));
      }
}

TEST_CASE("bitpipe: its authors' bubble for any whole number of units, with 1F1B's activations") {
  for (int p = 2; p <= 12; p += 2)
    for (int v = 1; v <= 4; ++v)
      for (int m = 1; m <= 5 * p; ++m) {
        INFO(words({p, m, v}));
        const auto made = measure(bitpipe{}, {p, m, v}, 1, 2);
        for (const auto& rank : made.ranks) CHECK(rank.peak <= p * v);
        const std::int64_t makespan = made.total.makespan;
        if (m <= p) CHECK(makespan == 3 * p * v + 4 * ((m + 1) / 2 - 1));
        if (m % p != 0) {
          // No more than with what is missing of the last unit.
          CHECK(makespan <= 3 * ((m + p - 1) / p * p) * v + 2 * (p - 2));
          continue;
        }
        CHECK(makespan == 3 * m * v + 2 * (p - 2));
        CHECK(makespan <= measure(interleaved{}, {p, m, v}, 1, 2).total.makespan);
        if (v == 1) CHECK(makespan == measure(chimera{}, {p, m, 1}, 1, 2).total.makespan);
      }
}

TEST_CASE("inference in two directions idles while their first micro-batches come across") {
  for (int p = 2; p <= 12; p += 2)
    for (int v = 1; v <= 4; ++v)
      for (int m = p; m <= 5 * p; m += p) {
        INFO(words({p, m, v}));
        const inference schedule{.placement = placement_kind::bidirectional};
        CHECK(measure(schedule, {p, m, v}, 1, 1).total.makespan == m * v + p - 2);
      }
}

TEST_CASE("dualpipe: its authors' bubble where a pair takes what its longer half takes") {
  // (p / 2 - 1)(f&B + B - 3 w), with f&B = B for f = b = w.
  for (int p = 2; p <= 12; p += 2)
    for (int m = 2 * p; m <= 5 * p; m += 2) {
      INFO(words({p, m, 1}));
      const auto lists = laws::emitted(dualpipe{}, {p, m, 1});
      const auto where = stretto::place(dualpipe{}.placed(), {p, m, 1});
      const stretto::job_table table(p, 2, {});
      std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(p));
      const auto made = stretto::measure(
          {.rows = lists.rows(), .where = where, .microbatches = m, .costs = table.view()}, ranks);
      CHECK(made.makespan == 3 * m + (p / 2 - 1) * (3 + 2 - 3));
      for (const auto& rank : ranks) CHECK(rank.peak <= p + 1);
    }
}

TEST_CASE("more ranks than micro-batches cost each rank no more") {
  for (const int rank : {0, 2'000, 3'999}) {
    int visited = 0;
    zbv_order(4'000, rank, 2, [&](int, stretto::job_kind) { ++visited; });
    CHECK(visited <= 2 * 24);
    stretto::job_lists lists(4'000, 12);
    stretto::job_sink sink = lists.sink();
    dual_rank list{sink, rank};
    dual_order_two_ways(list, 4'000, 4);
    CHECK(list.halves[0].forwards + list.halves[0].inputs + list.halves[0].weights <= 8 * 16);
  }
}
