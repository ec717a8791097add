// Exchanges make a V's order shorter, and stop when their replays are used up, however many pairs
// of jobs the critical path holds: it grows with the step, and a replay does, too.
#include "stretto/schedule/parts/v_exchange.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_compaction.hpp"

namespace {

using stretto::shape;
using stretto::schedule::objective_kind;
using stretto::schedule::variant_score;

struct outcome {
  std::int64_t before = 0;
  std::int64_t after = 0;
  int left = 0;
};

//! A block within 16 activations, of costs that leave much to exchange.
outcome improved(int microbatches, int tries) {
  const shape sizes{.ranks = 8, .microbatches = microbatches, .chunks = 2};
  const stretto::job_table table(
      8, 2, {.forward = 10, .backward_input = 13, .backward_weight = 6, .communication = 1});
  const stretto::job_table_view costs = table.view();
  stretto::scratch<stretto::schedule::v_block> laid(8);
  REQUIRE(lay({.fast = 2}, 8, laid.data()));
  stretto::schedule::v_orders slots(sizes, 16);
  stretto::schedule::v_compaction(sizes, laid.data(), false, slots);
  stretto::schedule::v_exchange order(sizes, costs, slots, objective_kind::flush, {});
  outcome found{.before = order.best().first};
  order.run(tries, variant_score{.fits = true});
  found.after = order.best().first;
  found.left = order.left();
  return found;
}

}  // namespace

TEST_CASE("exchanges replay a step no more often than they may") {
  for (const int tries : {1, 2, 3, 7, 40})
    for (const int microbatches : {16, 64, 256}) {
      CAPTURE(tries);
      CAPTURE(microbatches);
      const outcome found = improved(microbatches, tries);
      CHECK(found.left == 0);  // there is always more to try here
      CHECK(found.after <= found.before);
    }
}

TEST_CASE("exchanges make a step shorter") {
  const outcome found = improved(16, 512);
  CHECK(found.after < found.before);
}

TEST_CASE("what replays of parts of a step tell is what a replay of the whole tells") {
  for (const int microbatches : {1, 2, 5, 16, 33, 64})
    for (const int ranks : {1, 2, 4, 8})
      for (const bool to_the_limit : {false, true}) {
        const bool limited = to_the_limit == (microbatches % 2 == 0);
        CAPTURE(microbatches);
        CAPTURE(ranks);
        CAPTURE(limited);
        const shape sizes{.ranks = ranks, .microbatches = microbatches, .chunks = 2};
        stretto::job_table table(
            ranks, 2,
            {.forward = 10, .backward_input = 13, .backward_weight = 6, .communication = 2});
        if (limited) table.limit.assign(static_cast<std::size_t>(ranks), 2 * ranks);
        const stretto::job_table_view costs = table.view();
        stretto::scratch<stretto::schedule::v_block> laid(ranks);
        REQUIRE(lay({.fast = 2}, ranks, laid.data()));
        stretto::schedule::v_orders slots(sizes, 2 * ranks);
        stretto::schedule::v_compaction(sizes, laid.data(), false, slots);
        const stretto::schedule::v_fill_rules rules{.to_the_limit = to_the_limit};
        for (const auto objective : {objective_kind::flush, objective_kind::span}) {
          stretto::schedule::v_exchange order(sizes, costs, slots, objective, rules);
          order.run(300, variant_score{.fits = true});
          const stretto::schedule::v_fill whole(sizes, costs, slots, nullptr, rules);
          REQUIRE(whole.fits());
          const auto score = score_of(objective, whole.makespan(), whole.span());
          CHECK(order.best() == score);
        }
      }
}
