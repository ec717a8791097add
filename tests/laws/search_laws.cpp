// What the searches find, beside the closed forms that they know.
#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>

#include "stretto/schedule/all.hpp"
#include "support/measured_order.hpp"

namespace {

using stretto::shape;
using stretto::schedule::objective_kind;
using support::measure_order;

//! Whether the search finds nothing worse than the closed form under the limit that the form needs,
//! by either objective.
template <class Search, class Form>
void not_longer(const shape& sizes, stretto::job_table table) {
  const auto theirs = measure_order(Form{}, sizes, table.view());
  REQUIRE(theirs.fits);
  table.limit.assign(static_cast<std::size_t>(sizes.ranks), theirs.peak);
  INFO(std::string(Search::name), " and ", std::string(Form::name), ", p ", sizes.ranks, ", m ",
       sizes.microbatches, ", limit ", theirs.peak);
  for (const auto objective : {objective_kind::flush, objective_kind::span}) {
    const auto ours = measure_order(Search{.objective = objective}, sizes, table.view());
    REQUIRE(ours.fits);
    if (objective == objective_kind::flush)
      CHECK(ours.makespan <= theirs.makespan);
    else
      CHECK(ours.span <= theirs.span);
  }
}

}  // namespace

TEST_CASE("no search is longer than a closed form that it knows, within the memory of that") {
  using namespace stretto::schedule;
  std::mt19937 random(1);
  const auto up_to = [&](unsigned most) { return static_cast<int>(random() % most) + 1; };
  for (int round = 0; round < 20; ++round) {
    const shape sizes{.ranks = up_to(8), .microbatches = up_to(24), .chunks = 2};
    stretto::job_table table(sizes.ranks, 2, {up_to(20), up_to(20), up_to(20), up_to(4) - 1});
    if (round % 3 == 0)  // whole backwards that take less than their halves
      for (int rank = 0; rank < sizes.ranks; ++rank)
        for (int chunk = 0; chunk < 2; ++chunk)
          table.at(rank, chunk, stretto::job_kind::backward).time -=
              table.at(rank, chunk, stretto::job_kind::backward_weight).time / 2;
    not_longer<zbv_greedy, zbv>(sizes, table);
    not_longer<v_auto, zbv>(sizes, table);
    not_longer<v_auto, v_half>(sizes, table);
    not_longer<v_auto, v_min>(sizes, table);
    not_longer<v_auto, v_1f1b>(sizes, table);
    not_longer<v_auto, hanayo>(sizes, table);
  }
}
