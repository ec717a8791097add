// DualPipe and DualPipeV against figures of their authors' orders, with and without pairs as nodes.
#include <doctest/doctest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "laws/order_laws.hpp"
#include "stretto/plan/bound.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/all.hpp"

namespace {

using namespace stretto::schedule;

struct figure {
  stretto::unit_costs costs{};
  std::int64_t makespan = 0;
  std::int64_t paired = 0;
  std::int64_t peak = 0;
};

struct evaluated {
  std::int64_t makespan = 0;
  std::int64_t peak = 0;
  std::int64_t bound = 0;
};

template <class Schedule>
evaluated evaluate(const Schedule& schedule, const stretto::shape& sizes,
                   const stretto::unit_costs& costs, bool pairs) {
  stretto::job_lists lists = laws::emitted(schedule, sizes);
  const stretto::job_sink rows = lists.sink();
  for (int rank = 0; rank < sizes.ranks && !pairs; ++rank)
    for (int step = 0; step < rows.counts[rank]; ++step)
      rows.items[rank * rows.stride + step].paired = false;
  const stretto::placement where = stretto::place(schedule.placed(), sizes);
  const stretto::job_table table(sizes.ranks, where.chunks, costs);
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
  const auto found = stretto::measure({.rows = lists.rows(),
                                       .where = where,
                                       .microbatches = sizes.microbatches,
                                       .costs = table.view()},
                                      ranks);
  REQUIRE(found.answer.ok());
  evaluated made{.makespan = found.makespan,
                 .bound = stretto::lower_bound(where, table.view()).flush};
  for (const auto& rank : ranks) made.peak = std::max(made.peak, rank.peak);
  return made;
}

template <class Schedule>
void compare(const Schedule& schedule, const stretto::shape& sizes, const figure& theirs) {
  const evaluated apart = evaluate(schedule, sizes, theirs.costs, false);
  CHECK(apart.makespan == theirs.makespan);
  CHECK(apart.peak == theirs.peak);
  const evaluated together = evaluate(schedule, sizes, theirs.costs, true);
  CHECK(together.makespan == theirs.paired);
  CHECK(together.bound <= apart.makespan);
  // The more a pair hides the shorter the step, never below the bound for such pairs.
  std::int64_t before = together.makespan;
  for (int hides : {50, 100}) {
    stretto::unit_costs costs = theirs.costs;
    costs.pair_hides = hides;
    const evaluated hidden = evaluate(schedule, sizes, costs, true);
    CHECK(hidden.bound <= hidden.makespan);
    CHECK(hidden.makespan <= before);
    before = hidden.makespan;
  }
  CHECK(before < together.makespan);
}

}  // namespace

TEST_CASE("makespans and peaks of DualPipe and DualPipeV, their pairs apart and as nodes") {
  std::ifstream in(std::string(STRETTO_GOLDEN_DIR) + "/dualpipe_figures.txt");
  REQUIRE(in);
  int compared = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) continue;
    INFO(line);
    std::istringstream words(line);
    std::string name;
    stretto::shape sizes;
    figure theirs;
    auto& costs = theirs.costs;
    words >> name >> sizes.ranks >> sizes.microbatches >> costs.forward >> costs.backward_input >>
        costs.backward_weight >> costs.communication >> costs.memory_forward >>
        costs.memory_backward_input >> costs.memory_backward_weight >> theirs.makespan >>
        theirs.paired >> theirs.peak;
    REQUIRE(words);
    if (name == dualpipe::name) {
      compare(dualpipe{}, sizes, theirs);
    } else {
      REQUIRE(name == dualpipe_v::name);
      sizes.chunks = 2;
      compare(dualpipe_v{}, sizes, theirs);
    }
    ++compared;
  }
  CHECK(compared == 132);
}
