// Schedules made for the costs at hand, under random costs and limits: whatever they emit keeps all
// rules within the limits, and a refusal names the smallest limit that is enough.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "laws/order_laws.hpp"
#include "stretto/check/all.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/v_auto.hpp"
#include "stretto/schedule/zb_auto.hpp"
#include "stretto/schedule/zbv_greedy.hpp"

namespace {

using stretto::job_kind;
using stretto::shape;

class dice {
 public:
  explicit dice(unsigned seed) : random_(seed) {}
  //! From `least` to `most`, the same with every library.
  std::int64_t operator()(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most - least + 1));
  }

 private:
  std::mt19937_64 random_;
};

//! The most that one micro-batch takes above its present level, in the best of all orders of what
//! is left of it on the rank, of whose chunks so many jobs have run: F, I, W.
std::int64_t least_need(const stretto::job_table& table, int rank, const std::vector<int>& done) {
  const int chunks = table.chunks;
  std::int64_t least = stretto::unlimited;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const auto at = static_cast<std::size_t>(chunk);
    const bool open = done[at] == 0   ? chunk == 0 || done[at - 1] > 0
                      : done[at] == 1 ? chunk + 1 == chunks || done[at + 1] > 1
                                      : done[at] == 2;
    if (!open) continue;
    const job_kind kinds[] = {job_kind::forward, job_kind::backward_input,
                              job_kind::backward_weight};
    const auto cost = table.view().at(rank, chunk, kinds[done[at]]);
    std::vector<int> after = done;
    ++after[at];
    least = std::min(
        least, std::max({cost.change, cost.peak, cost.change + least_need(table, rank, after)}));
  }
  return least == stretto::unlimited ? 0 : least;
}

struct trial {
  shape sizes{};
  stretto::job_table table;
  std::vector<std::int64_t> smallest{};  //!< of every rank: one micro-batch at a time, at best
};

//! Costs and memory of every rank, chunk and kind on their own; what a micro-batch takes it gives
//! back, at the backward for the input or for the weights; a whole one is its halves. `chunks` 0:
//! any number of them.
trial random_trial(dice& roll, int chunks) {
  trial made;
  made.sizes = {.ranks = static_cast<int>(roll(1, 6)),
                .microbatches = static_cast<int>(roll(1, 9)),
                .chunks = static_cast<int>(roll(1, 4))};
  if (chunks > 0) made.sizes.chunks = chunks;
  const auto [p, m, v, slices] = made.sizes;
  made.table = stretto::job_table(p, v);
  made.table.communication = roll(0, 3) == 0 ? 0 : roll(0, 12);
  const std::int64_t longest = roll(0, 2) == 0 ? 1 : 20;
  const std::int64_t shortest = roll(0, 4) == 0 ? 0 : 1;
  for (int rank = 0; rank < p; ++rank) {
    made.table.base.push_back(roll(0, 10));
    for (int chunk = 0; chunk < v; ++chunk) {
      const std::int64_t taken = roll(0, 8);
      auto& forward = made.table.at(rank, chunk, job_kind::forward);
      forward = {roll(shortest, longest), taken, roll(0, 1) == 0 ? 0 : taken + roll(0, 4)};
      const std::int64_t back = roll(-2, taken);
      made.table.at(rank, chunk, job_kind::backward_input) = {roll(shortest, longest), -back,
                                                              roll(0, 1) == 0 ? 0 : roll(0, 5)};
      made.table.at(rank, chunk, job_kind::backward_weight) = {
          roll(shortest, longest), back - taken, roll(0, 1) == 0 ? 0 : roll(0, 3)};
      const auto& input = made.table.at(rank, chunk, job_kind::backward_input);
      const auto& weight = made.table.at(rank, chunk, job_kind::backward_weight);
      made.table.at(rank, chunk, job_kind::backward) = {
          input.time + weight.time, -taken,
          std::max({input.peak, input.change, input.change + weight.peak})};
    }
    made.smallest.push_back(
        made.table.base.back() +
        least_need(made.table, rank, std::vector<int>(static_cast<std::size_t>(v))));
  }
  const std::int64_t room = roll(-3, 60);
  if (roll(0, 3) > 0)
    for (int rank = 0; rank < p; ++rank)
      made.table.limit.push_back(made.smallest[static_cast<std::size_t>(rank)] +
                                 roll(std::min(room, std::int64_t{0}), room));
  return made;
}

struct greedy_tally {
  int served = 0;
  int refused = 0;
};

template <class Schedule>
void obeys(const Schedule& schedule, trial& of, greedy_tally& seen) {
  const auto emit = [&](stretto::job_lists& lists) {
    lists = stretto::job_lists(of.sizes.ranks, schedule.capacity(of.sizes));
    stretto::job_sink sink = lists.sink();
    return schedule.emit(of.sizes, of.table.view(), sink);
  };
  stretto::job_lists lists;
  stretto::verdict answer = emit(lists);
  if (!answer) {
    ++seen.refused;
    REQUIRE(answer.what == stretto::fault::over_limit);
    REQUIRE(answer.rank >= 0);
    const auto at = static_cast<std::size_t>(answer.rank);
    REQUIRE(answer.limit == of.table.limit[at]);
    REQUIRE(answer.amount == of.smallest[at]);
    const auto raise = [&](std::int64_t amount) {
      for (auto& limit : of.table.limit) limit = std::max(limit, amount);
    };
    raise(answer.amount - 1);
    const stretto::verdict less = emit(lists);
    REQUIRE(!less);
    REQUIRE(less.amount == answer.amount);
    raise(answer.amount);
    answer = emit(lists);
    REQUIRE(answer.ok());
  }
  ++seen.served;
  const auto found = stretto::check::schedule({.rows = lists.rows(),
                                               .where = stretto::place(schedule.placed(), of.sizes),
                                               .microbatches = of.sizes.microbatches,
                                               .costs = of.table.view()});
  REQUIRE(std::string(stretto::to_text(found).view()) == "ok");
}

template <class Schedule>
void try_all(const Schedule& schedule, unsigned seed, int trials, int chunks = 0) {
  dice roll(seed);
  greedy_tally seen;
  for (int number = 0; number < trials; ++number) {
    trial one = random_trial(roll, chunks);
    INFO(laws::words(one.sizes), " trial ", number);
    obeys(schedule, one, seen);
  }
  MESSAGE(std::string(schedule.name), ": ", seen.served, " served, ", seen.refused,
          " refused at first");
  CHECK(seen.served == trials);
  CHECK(seen.refused > trials / 50);
}

}  // namespace

namespace {

//! The least that the rank that needs most uses, over every order of all jobs of a tiny step. Jobs
//! of one kind and stage run in the order of the micro-batches.
class every_order {
 public:
  explicit every_order(const trial& of)
      : sizes_(of.sizes),
        table_(of.table),
        where_(stretto::place(stretto::placement_kind::wave, of.sizes)) {}

  std::int64_t smallest() {
    counts none(static_cast<std::size_t>(3 * where_.stages()));
    std::int64_t base = 0;
    for (const std::int64_t one : table_.base) base = std::max(base, one);
    std::set<std::pair<std::int64_t, counts>> open{{base, none}};
    std::set<counts> seen;
    for (;;) {
      const auto [high, done] = *open.begin();
      open.erase(open.begin());
      if (!seen.insert(done).second) continue;
      bool ended = true;
      for (int stage = 0; stage < where_.stages(); ++stage)
        for (int kind = 0; kind < 3; ++kind) {
          if (at(done, stage, kind) == sizes_.microbatches) continue;
          ended = false;
          if (!may_run(done, stage, kind)) continue;
          counts after = done;
          ++after[static_cast<std::size_t>(3 * stage + kind)];
          const stretto::job_cost& cost = cost_of(stage, kind);
          const std::int64_t needs =
              level(done, where_.rank_of(stage, 0)) + std::max(cost.change, cost.peak);
          open.insert({std::max(high, needs), after});
        }
      if (ended) return high;
    }
  }

 private:
  using counts = std::vector<int>;  // jobs done of each (stage, kind)

  static int at(const counts& done, int stage, int kind) {
    return done[static_cast<std::size_t>(3 * stage + kind)];
  }
  const stretto::job_cost& cost_of(int stage, int kind) const {
    const job_kind kinds[] = {job_kind::forward, job_kind::backward_input,
                              job_kind::backward_weight};
    return table_.view().at(where_.rank_of(stage, 0), where_.chunk_of(stage, 0), kinds[kind]);
  }
  bool may_run(const counts& done, int stage, int kind) const {
    const int next = at(done, stage, kind);
    if (kind == 0) return stage == 0 || at(done, stage - 1, 0) > next;
    if (kind == 2) return at(done, stage, 1) > next;
    return stage + 1 == where_.stages() ? at(done, stage, 0) > next : at(done, stage + 1, 1) > next;
  }
  std::int64_t level(const counts& done, int rank) const {
    std::int64_t sum = table_.view().base_of(rank);
    for (int stage = 0; stage < where_.stages(); ++stage)
      for (int kind = 0; kind < 3 && where_.rank_of(stage, 0) == rank; ++kind)
        sum += at(done, stage, kind) * cost_of(stage, kind).change;
    return sum;
  }

  const shape& sizes_;
  const stretto::job_table& table_;
  stretto::placement where_;
};

}  // namespace

TEST_CASE("no order of a tiny step needs less than the smallest limit that a refusal names") {
  dice roll(3);
  int tried = 0;
  while (tried < 400) {
    trial one = random_trial(roll, 0);
    const auto [p, m, v, slices] = one.sizes;
    if (p * m * v > 6) continue;
    ++tried;
    INFO(laws::words(one.sizes), " trial ", tried);
    const std::int64_t least = every_order(one).smallest();
    CHECK(least == std::ranges::max(one.smallest));
    one.table.limit.assign(static_cast<std::size_t>(p), least);
    greedy_tally seen;
    obeys(stretto::schedule::zbv_greedy{}, one, seen);
    CHECK(seen.refused == 0);
    if (v == 1) obeys(stretto::schedule::zb_auto{}, one, seen);
    if (v == 2) obeys(stretto::schedule::v_auto{}, one, seen);
    CHECK(seen.refused == 0);
  }
}

TEST_CASE("the greedy V under random costs and limits: every rule, or the smallest limit") {
  try_all(stretto::schedule::zbv_greedy{}, 1, 12000);
}

TEST_CASE("the adaptive V under random costs and limits: every rule, or the smallest limit") {
  try_all(stretto::schedule::v_auto{}, 2, 300, 2);
}

TEST_CASE("below V-Min's memory, as many micro-batches as fit follow in step, round after round") {
  constexpr stretto::schedule::v_auto search;
  int seen = 0;
  for (const int ranks : {2, 3, 4, 5, 6, 7, 8, 9, 12, 16})
    for (const int microbatches : {1, 2, ranks, 2 * ranks + 1, 3 * ranks})
      // Of two activations each; six slots apart, and from one round to the next 2 p + 4.
      for (int together = 1; 6 * together <= 2 * ranks + 4; ++together) {
        INFO(ranks, " ranks, ", microbatches, " micro-batches, ", together, " together");
        const shape sizes{ranks, microbatches, 2};
        stretto::job_table table(ranks, 2);
        table.limit.assign(static_cast<std::size_t>(ranks), 2 * together);
        const int best = best_variant(search, sizes, table.view());
        const int rounds = (microbatches - 1) / together;
        const int last = (microbatches - 1) % together;
        CHECK(search.score(sizes, table.view(), best).first <=
              rounds * (2 * ranks + 4) + 6 * last + 4 * ranks + 1);
        ++seen;
      }
  CHECK(seen == 135);
}

namespace {

//! Searches under one unit of memory more after the other: how often one takes longer than under
//! less.
struct growth {
  int steps = 0;
  int longer = 0;

  template <class Search>
  void try_limits(const Search& search, const shape& sizes, const stretto::unit_costs& costs,
                  int most) {
    stretto::job_table table(sizes.ranks, sizes.chunks, costs);
    std::int64_t least = stretto::unlimited;
    for (int limit = sizes.chunks; limit <= most; ++limit) {
      table.limit.assign(static_cast<std::size_t>(sizes.ranks), limit);
      const int best = best_variant(search, sizes, table.view());
      const std::int64_t found = search.score(sizes, table.view(), best).first;
      if (least < stretto::unlimited) ++steps;
      if (found > least) ++longer;
      least = std::min(least, found);
    }
  }
};

}  // namespace

TEST_CASE("what a search finds with less memory is seldom lost with more") {
  dice roll(4);
  growth zb_auto, zbv_greedy, v_auto;
  zb_auto.try_limits(stretto::schedule::zb_auto{}, {8, 17, 1}, {12, 12, 15, 1}, 20);
  v_auto.try_limits(stretto::schedule::v_auto{}, {4, 12, 2}, {5, 5, 1, 1}, 12);
  for (int number = 0; number < 200; ++number) {
    const int ranks = static_cast<int>(roll(2, 8));
    const int microbatches = static_cast<int>(roll(1, 3 * ranks));
    const stretto::unit_costs costs{roll(1, 20), roll(1, 20), roll(1, 20), roll(0, 3)};
    INFO(ranks, " ranks, ", microbatches, " micro-batches, trial ", number);
    zb_auto.try_limits(stretto::schedule::zb_auto{}, {ranks, microbatches, 1}, costs, 3 * ranks);
    zbv_greedy.try_limits(stretto::schedule::zbv_greedy{}, {ranks, microbatches, 2}, costs,
                          4 * ranks);
    if (number % 10 == 0)
      v_auto.try_limits(stretto::schedule::v_auto{}, {ranks, microbatches, 2}, costs, 2 * ranks);
  }
  const auto tell = [](const char* name, const growth& of) {
    MESSAGE(std::string(name), ": longer in ", of.longer, " of ", of.steps, " steps of a unit");
  };
  tell("zb_auto", zb_auto);
  tell("zbv_greedy", zbv_greedy);
  tell("v_auto", v_auto);
  CHECK(zb_auto.longer <= zb_auto.steps / 1000);
  CHECK(zbv_greedy.longer <= zbv_greedy.steps / 100);
  CHECK(v_auto.longer <= v_auto.steps / 200);
}
