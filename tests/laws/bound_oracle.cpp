// The lower bounds against the optimum of tiny steps, found by trying every order.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

#include "laws/any_order.hpp"
#include "laws/order_laws.hpp"
#include "stretto/model/bound.hpp"
#include "stretto/plan/report.hpp"
#include "support/schedules.hpp"

namespace {

using stretto::shape;

//! One rank of a step in progress. Jobs of a kind start in the order of the micro-batches: another
//! order is never faster, because sorting the start times breaks no dependency.
struct rank_state {
  static constexpr int none = 4;

  //! Forwards, backwards for the input, for the weights, whole ones.
  std::array<int, 4> started{};
  int running = none;  //!< the kind that runs
  int left = 0;        //!< of its time

  int done(int kind) const {
    return started[static_cast<std::size_t>(kind)] - (running == kind ? 1 : 0);
  }
  int gradients() const { return done(1) + done(3); }
};

//! All states that some order can be in, a unit of time after the other, until one is at the end.
//! One chunk a rank, no time between ranks, a forward takes one unit of memory and the end of its
//! backward gives it back. Times are those of F, I, W and B.
class every_state {
 public:
  every_state(int ranks, int microbatches, std::array<int, 4> times, int limit)
      : count_(microbatches), limit_(limit), times_(times), now_(static_cast<std::size_t>(ranks)) {}

  std::int64_t makespan() {
    std::unordered_set<std::uint64_t> level{packed()};
    for (std::int64_t time = 0;; ++time) {
      std::unordered_set<std::uint64_t> next;
      for (std::uint64_t state : level) {
        unpack(state);
        if (ended()) return time;
        start_from(0, next);
      }
      level = std::move(next);
    }
  }

 private:
  std::uint64_t packed() const {
    std::uint64_t state = 0;
    for (const rank_state& one : now_) {
      for (int started : one.started) state = state << 3 | static_cast<std::uint64_t>(started);
      state = state << 6 | static_cast<std::uint64_t>(one.running << 3 | one.left);
    }
    return state;
  }
  void unpack(std::uint64_t state) {
    for (auto one = now_.rbegin(); one != now_.rend(); ++one) {
      one->left = static_cast<int>(state & 7);
      one->running = static_cast<int>(state >> 3 & 7);
      state >>= 6;
      for (auto started = one->started.rbegin(); started != one->started.rend(); ++started) {
        *started = static_cast<int>(state & 7);
        state >>= 3;
      }
    }
  }
  bool ended() const {
    return std::all_of(now_.begin(), now_.end(),
                       [&](const rank_state& one) { return one.done(2) + one.done(3) == count_; });
  }
  bool may_start(std::size_t rank, int kind) const {
    const rank_state& at = now_[rank];
    const int next = kind == 1 || kind == 3 ? at.started[1] + at.started[3]
                                            : at.started[static_cast<std::size_t>(kind)];
    if (next == count_) return false;
    if (kind == 0)
      return at.started[0] - at.done(2) - at.done(3) < limit_ &&
             (rank == 0 || now_[rank - 1].done(0) > next);
    if (kind == 2) return at.done(1) > next;
    // A whole backward that takes no less than its halves is never better than those.
    if (kind == 3 && times_[3] >= times_[1] + times_[2]) return false;
    return at.done(0) > next && (rank + 1 == now_.size() || now_[rank + 1].gradients() > next);
  }
  //! Every choice of what the free ranks from `rank` on start; then a unit of time passes.
  void start_from(std::size_t rank, std::unordered_set<std::uint64_t>& next) {
    if (rank == now_.size()) {
      const auto before = now_;
      for (rank_state& one : now_)
        if (one.running < rank_state::none && --one.left == 0) one.running = rank_state::none;
      next.insert(packed());
      now_ = before;
      return;
    }
    start_from(rank + 1, next);
    if (now_[rank].running < rank_state::none) return;
    for (int kind = 0; kind < rank_state::none; ++kind) {
      if (!may_start(rank, kind)) continue;
      const rank_state before = now_[rank];
      ++now_[rank].started[static_cast<std::size_t>(kind)];
      now_[rank].running = kind;
      now_[rank].left = times_[static_cast<std::size_t>(kind)];
      start_from(rank + 1, next);
      now_[rank] = before;
    }
  }

  int count_;
  int limit_;
  std::array<int, 4> times_;
  std::vector<rank_state> now_;
};

struct bound_tally {
  int cases = 0;
  int tight = 0;
  int fits = 0;
  int optimal = 0;
};

void compare(const shape& sizes, std::array<int, 4> times, int limit, bound_tally& seen) {
  const stretto::unit_costs costs{
      .forward = times[0], .backward_input = times[1], .backward_weight = times[2]};
  stretto::job_table table(sizes.ranks, 1, costs);
  for (int rank = 0; rank < sizes.ranks; ++rank)
    table.at(rank, 0, stretto::job_kind::backward).time = times[3];
  table.limit.assign(static_cast<std::size_t>(sizes.ranks), limit);
  const auto where = stretto::place(stretto::placement_kind::looped, sizes);
  const std::int64_t bound = stretto::lower_bound(where, table.view()).flush;
  const std::int64_t best = every_state(sizes.ranks, sizes.microbatches, times, limit).makespan();
  INFO(laws::words(sizes), " f=", times[0], " b=", times[1], " w=", times[2], " B=", times[3],
       " limit ", limit);
  CHECK(bound <= best);
  const bool equal_times =
      times[0] == times[1] && times[1] == times[2] && times[3] == times[1] + times[2];
  if (equal_times && limit >= std::min(sizes.ranks, sizes.microbatches)) CHECK(bound == best);
  ++seen.cases;
  seen.tight += bound == best;
  for (const stretto::schedule::any& schedule : support::schedules()) {
    if (schedule.forward_only || !schedule.supports(sizes) ||
        schedule.placed() != stretto::placement_kind::looped)
      continue;
    stretto::job_lists lists(sizes.ranks, schedule.capacity(sizes));
    stretto::job_sink sink = lists.sink();
    if (!schedule.emit(sizes, table.view(), sink)) continue;
    std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
    const auto made = stretto::measure({.rows = lists.rows(),
                                        .where = where,
                                        .microbatches = sizes.microbatches,
                                        .costs = table.view()},
                                       ranks);
    REQUIRE(made.answer.ok());
    if (std::ranges::any_of(ranks, [&](const auto& rank) { return rank.peak > limit; })) continue;
    CHECK_MESSAGE(best <= made.makespan, std::string(schedule.name));
    ++seen.fits;
    seen.optimal += best == made.makespan;
  }
}

}  // namespace

TEST_CASE("bound <= optimum <= every schedule, over every order of tiny steps") {
  bound_tally seen;
  for (int p = 1; p <= 3; ++p)
    for (int m = 1; m <= 4; ++m)
      for (int limit = 1; limit <= m; ++limit) {
        const shape sizes{.ranks = p, .microbatches = m};
        compare(sizes, {1, 1, 1, 2}, limit, seen);
        compare(sizes, {1, 2, 1, 3}, limit, seen);
        compare(sizes, {2, 1, 1, 2}, limit, seen);
        compare(sizes, {1, 1, 2, 3}, limit, seen);
        compare(sizes, {2, 3, 1, 4}, limit, seen);
      }
  MESSAGE(seen.cases, " steps: the bound meets ", seen.tight, "; ", seen.fits,
          " orders fit, of which ", seen.optimal, " are optimal");
  CHECK(seen.cases == 150);
  CHECK(seen.optimal > 0);
}

TEST_CASE("the same where a whole backward takes less than its halves") {
  bound_tally seen;
  for (int p = 1; p <= 3; ++p)
    for (int m = 1; m <= (p < 3 ? 4 : 3); ++m)
      for (int limit = 1; limit <= m; ++limit) {
        const shape sizes{.ranks = p, .microbatches = m};
        compare(sizes, {1, 1, 1, 1}, limit, seen);
        compare(sizes, {1, 2, 2, 3}, limit, seen);
        compare(sizes, {2, 1, 3, 2}, limit, seen);
        compare(sizes, {1, 3, 1, 2}, limit, seen);  // than its first half alone
      }
  MESSAGE(seen.cases, " steps: the bound meets ", seen.tight, "; ", seen.fits,
          " orders fit, of which ", seen.optimal, " are optimal");
  CHECK(seen.cases == 104);
  CHECK(seen.tight > 0);
  CHECK(seen.optimal > 0);
}

TEST_CASE("no schedule is below the bounds, whatever a whole backward takes") {
  std::mt19937 random(1);
  int cases = 0;
  for (int round = 0; round < 60; ++round)
    for (const stretto::schedule::any& schedule : support::schedules()) {
      const shape sizes{.ranks = 1 + static_cast<int>(random() % 6),
                        .microbatches = 1 + static_cast<int>(random() % 12),
                        .chunks = 1 + static_cast<int>(random() % 3)};
      if (schedule.forward_only || !schedule.supports(sizes)) continue;
      const stretto::placement where = stretto::place(schedule.placed(), sizes);
      const stretto::job_table table = laws::any_costs(random, where);
      stretto::job_lists lists(sizes.ranks, schedule.capacity(sizes));
      stretto::job_sink sink = lists.sink();
      REQUIRE(schedule.emit(sizes, table.view(), sink).ok());
      std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
      const auto made = stretto::measure({.rows = lists.rows(),
                                          .where = where,
                                          .microbatches = sizes.microbatches,
                                          .costs = table.view()},
                                         ranks);
      REQUIRE(made.answer.ok());
      INFO(std::string(schedule.name), " ", laws::words(sizes), " round ", round);
      const stretto::step_bound bound = stretto::lower_bound(where, table.view());
      CHECK(bound.flush <= made.makespan);
      CHECK(bound.span <= made.span);
      ++cases;
    }
  CHECK(cases > 500);
}

TEST_CASE("nor is any order, wherever its stages lie") {
  std::mt19937 random(2);
  const auto below = [&](int end) {
    return static_cast<int>(random() % static_cast<unsigned>(end));
  };
  int elsewhere = 0;
  int crowded = 0;
  for (int round = 0; round < 6000; ++round) {
    const laws::any_order order(random);
    const stretto::placement where = order.where();
    const int ranks = where.ranks;
    elsewhere += where.rank_of(0, 0) != 0;
    crowded += where.chunks > (where.stages() + ranks - 1) / ranks;
    stretto::job_table costs = laws::any_costs(random, where);
    std::vector<stretto::rank_report> reports(static_cast<std::size_t>(ranks));
    const auto measured = [&] {
      return stretto::measure({.rows = order.rows(),
                               .where = where,
                               .microbatches = where.microbatches,
                               .costs = costs.view()},
                              reports);
    };
    const auto made = measured();
    REQUIRE(made.answer.ok());
    // The least limits that it keeps.
    if (below(2) == 0)
      for (const stretto::rank_report& each : reports) costs.limit.push_back(each.peak);
    CAPTURE(round);
    const stretto::step_bound bound = stretto::lower_bound(where, costs.view());
    CHECK(bound.flush <= made.makespan);
    CHECK(bound.span <= made.span);
  }
  CHECK(elsewhere > 1000);
  CHECK(crowded > 1000);
}

TEST_CASE("the bounds of known formulas") {
  for (int p = 1; p <= 9; ++p)
    for (int m = 2 * p; m <= 20; ++m) {
      const shape sizes{.ranks = p, .microbatches = m};
      const auto where = stretto::place(stretto::placement_kind::looped, sizes);
      stretto::job_table table(p, 1, {.forward = 3, .backward_input = 4, .backward_weight = 2});
      const std::int64_t work = m * 9;
      INFO(laws::words(sizes));
      table.limit.assign(static_cast<std::size_t>(p), p);  // ZB-H1: (p - 1)(f + b - w)
      CHECK(stretto::lower_bound(where, table.view()).flush == work + (p - 1) * 5);
      CHECK(stretto::lower_bound(where, table.view()).span == work + (p - 1) * 5);
      table.limit.assign(static_cast<std::size_t>(p), 2 * p - 1);  // ZB-H2: (p - 1)(f + b - 2 w)
      CHECK(stretto::lower_bound(where, table.view()).span == work + (p - 1) * 3);
      table.limit.clear();
      CHECK(stretto::lower_bound(where, table.view()).flush >= work + (p - 1) * 3);
    }
  // Constant: p = 8, m = 24, f = b = w = 1 on a V without limits: (p - 1) half-stages of bubble.
  constexpr stretto::fixed_job_table<8, 2> table;
  constexpr auto v = stretto::lower_bound(
      stretto::place(stretto::placement_kind::wave, {.ranks = 8, .microbatches = 24, .chunks = 2}),
      table.view());
  static_assert(v == stretto::step_bound{.flush = 24 * 6 + 7, .span = 24 * 6});
  // Two directions: (p / 2 - 1) forwards.
  constexpr auto two = stretto::lower_bound(
      stretto::place(stretto::placement_kind::bidirectional, {.ranks = 8, .microbatches = 24}),
      table.view());
  static_assert(two == stretto::step_bound{.flush = 24 * 3 + 3, .span = 24 * 3});
}
