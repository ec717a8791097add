// Schedules made for the costs at hand, under random costs and limits: whatever they emit keeps all
// rules within the limits, and a refusal names the smallest limit that is enough.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "laws/order_laws.hpp"
#include "stretto/check/all.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/v_auto.hpp"
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

struct trial {
  shape sizes{};
  stretto::job_table table;
  std::vector<std::int64_t> smallest{};  //!< of every rank: one micro-batch at a time
};

//! Costs and memory of every rank, chunk and kind on their own; what a micro-batch takes it gives
//! back, at the backward for the input or for the weights. `chunks` 0: any number of them.
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
    std::int64_t level = roll(0, 10);
    made.table.base.push_back(level);
    std::int64_t most = level;
    std::vector<std::int64_t> after(static_cast<std::size_t>(v));
    const auto run = [&](const stretto::job_cost& cost) {
      most = std::max(most, level + std::max(cost.change, cost.peak));
      level += cost.change;
    };
    for (int chunk = 0; chunk < v; ++chunk) {
      const std::int64_t taken = roll(0, 8);
      auto& forward = made.table.at(rank, chunk, job_kind::forward);
      forward = {roll(shortest, longest), taken, roll(0, 1) == 0 ? 0 : taken + roll(0, 4)};
      const std::int64_t back = roll(-2, taken);
      made.table.at(rank, chunk, job_kind::backward_input) = {roll(shortest, longest), -back,
                                                              roll(0, 1) == 0 ? 0 : roll(0, 5)};
      made.table.at(rank, chunk, job_kind::backward_weight) = {
          roll(shortest, longest), back - taken, roll(0, 1) == 0 ? 0 : roll(0, 3)};
      run(forward);
    }
    for (int chunk = v - 1; chunk >= 0; --chunk) {
      run(made.table.at(rank, chunk, job_kind::backward_input));
      run(made.table.at(rank, chunk, job_kind::backward_weight));
    }
    made.smallest.push_back(most);
  }
  const std::int64_t room = roll(-3, 60);
  if (roll(0, 3) > 0)
    for (int rank = 0; rank < p; ++rank)
      made.table.limit.push_back(made.smallest[static_cast<std::size_t>(rank)] +
                                 roll(std::min(room, std::int64_t{0}), room));
  return made;
}

struct tally {
  int served = 0;
  int refused = 0;
};

template <class Schedule>
void obeys(const Schedule& schedule, trial& of, tally& seen) {
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
  tally seen;
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

TEST_CASE("the greedy V under random costs and limits: every rule, or the smallest limit") {
  try_all(stretto::schedule::zbv_greedy{}, 1, 12000);
}

TEST_CASE("the adaptive V under random costs and limits: every rule, or the smallest limit") {
  try_all(stretto::schedule::v_auto{}, 2, 600, 2);
}
