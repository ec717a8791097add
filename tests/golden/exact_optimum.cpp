// The lower bounds against proven optima, and these against every schedule that fits the memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "laws/order_laws.hpp"
#include "stretto/model/bound.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/all.hpp"
#include "stretto/schedule/any.hpp"
#include "stretto/schedule/v_auto.hpp"

namespace {

struct optimum {
  stretto::shape sizes{};
  stretto::placement_kind placement{};
  stretto::unit_costs costs{};
  std::int64_t limit = 0;
  bool flush = true;   //!< else span
  bool whole = false;  //!< backwards are not split
  std::int64_t least = 0;
};

std::vector<optimum> read_optima(const std::string& file) {
  std::ifstream in(std::string(STRETTO_GOLDEN_DIR) + "/" + file);
  if (!in) throw std::runtime_error(file + ": cannot be opened");
  std::vector<optimum> all;
  int line = 0;
  for (std::string text; std::getline(in, text);) {
    ++line;
    if (text.empty() || text.front() == '#') continue;
    std::istringstream words(text);
    optimum one;
    std::string placement, objective, split, bar[3];
    auto& c = one.costs;
    words >> one.sizes.ranks >> one.sizes.microbatches >> one.sizes.chunks >> placement >> bar[0] >>
        c.forward >> c.backward_input >> c.backward_weight >> c.communication >> bar[1] >>
        one.limit >> bar[2] >> objective >> split >> one.least;
    if (!words || std::any_of(bar, bar + 3, [](const auto& word) { return word != "|"; }) ||
        (placement != "looped" && placement != "wave") ||
        (objective != "flush" && objective != "span") || (split != "split" && split != "whole"))
      throw std::runtime_error(file + ":" + std::to_string(line) + ": not an optimum");
    one.placement =
        placement == "wave" ? stretto::placement_kind::wave : stretto::placement_kind::looped;
    one.flush = objective == "flush";
    one.whole = split == "whole";
    all.push_back(one);
  }
  return all;
}

struct optimum_tally {
  int fits = 0;
  int optimal = 0;
  double longest = 0;  //!< beside the optimum
};

//! Runs the schedule where it serves the shape, placement and limit.
void compare_as_it_is(const stretto::schedule::any& schedule, const optimum& best,
                      const stretto::job_table& table, optimum_tally& seen) {
  if (schedule.forward_only || schedule.placed() != best.placement ||
      !schedule.supports(best.sizes))
    return;
  stretto::job_lists lists(best.sizes.ranks, schedule.capacity(best.sizes));
  stretto::job_sink sink = lists.sink();
  if (!schedule.emit(best.sizes, table.view(), sink)) return;  // nothing of it fits the limit
  for (int rank = 0; rank < best.sizes.ranks; ++rank)
    for (const stretto::job& work : lists.rows().row(rank))
      if (best.whole && work.kind == stretto::job_kind::backward_input) return;
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(best.sizes.ranks));
  std::vector<stretto::job_time> times(static_cast<std::size_t>(best.sizes.ranks) *
                                       static_cast<std::size_t>(lists.rows().stride));
  const auto made = stretto::measure({.rows = lists.rows(),
                                      .where = stretto::place(best.placement, best.sizes),
                                      .microbatches = best.sizes.microbatches,
                                      .costs = table.view()},
                                     ranks, times);
  REQUIRE(made.answer.ok());
  std::int64_t span = 0;
  for (int rank = 0; rank < best.sizes.ranks; ++rank) {
    if (ranks[static_cast<std::size_t>(rank)].peak > best.limit) return;
    const auto first = static_cast<std::size_t>(rank * lists.rows().stride);
    const auto last = first + lists.rows().row(rank).size() - 1;
    span = std::max(span, times[last].end - times[first].start);
  }
  const std::int64_t ours = best.flush ? made.makespan : span;
  CHECK_MESSAGE(best.least <= ours, std::string(schedule.name));
  ++seen.fits;
  seen.optimal += ours == best.least;
  seen.longest =
      std::max(seen.longest, static_cast<double>(ours) / static_cast<double>(best.least));
}

//! The same for the placement and the aim of the optimum, where the schedule has such options.
template <class Schedule>
void compare(Schedule schedule, const optimum& best, const stretto::job_table& table,
             optimum_tally& seen) {
  if constexpr (requires { schedule.placement; }) schedule.placement = best.placement;
  if constexpr (requires { schedule.objective; })
    schedule.objective = best.flush ? stretto::schedule::objective_kind::flush
                                    : stretto::schedule::objective_kind::span;
  compare_as_it_is(schedule, best, table, seen);
}

}  // namespace

TEST_CASE("the bound is at most the optimum, the optimum at most every schedule") {
  const auto optima = read_optima("exact_optimum.txt");
  int tight = 0;
  int one_chunk = 0;
  optimum_tally seen;
  for (const optimum& best : optima) {
    const auto& c = best.costs;
    INFO(laws::words(best.sizes), " f=", c.forward, " b=", c.backward_input,
         " w=", c.backward_weight, " c=", c.communication, " limit ", best.limit,
         best.flush ? " flush" : " span");
    stretto::job_table table(best.sizes.ranks, best.sizes.chunks, c);
    table.limit.assign(static_cast<std::size_t>(best.sizes.ranks), best.limit);
    const auto bound =
        stretto::lower_bound(stretto::place(best.placement, best.sizes), table.view());
    const std::int64_t of = best.flush ? bound.flush : bound.span;
    CHECK(of <= best.least);
    tight += of == best.least;
    // The case in which the bound is known to be exact.
    if (best.sizes.chunks == 1 && !best.whole && c.communication == 0 && c.forward == 1 &&
        c.backward_input == 1 && c.backward_weight == 1 && best.limit >= best.sizes.ranks) {
      CHECK(of == best.least);
      ++one_chunk;
    }
    stretto::schedule::all::for_each(
        [&](const auto& schedule) { compare(schedule, best, table, seen); });
  }
  MESSAGE(optima.size(), " optima: the bound meets ", tight, "; ", seen.fits,
          " orders fit, of which ", seen.optimal, " are optimal; ", one_chunk, " exact cases");
  CHECK(optima.size() == 517);
  CHECK(one_chunk > 0);
  CHECK(seen.optimal > 0);
}

TEST_CASE("searches are close to the optimum") {
  optimum_tally one_chunk;
  optimum_tally wave;
  optimum_tally adaptive;
  for (const optimum& best : read_optima("exact_optimum.txt")) {
    if (best.whole) continue;
    stretto::job_table table(best.sizes.ranks, best.sizes.chunks, best.costs);
    table.limit.assign(static_cast<std::size_t>(best.sizes.ranks), best.limit);
    compare(stretto::schedule::zb_auto{}, best, table, one_chunk);
    if (best.sizes.chunks > 1) compare(stretto::schedule::zbv_greedy{}, best, table, wave);
    compare(stretto::schedule::v_auto{}, best, table, adaptive);
  }
  MESSAGE("zb_auto: ", one_chunk.fits, " fit, ", one_chunk.optimal, " optimal, the longest ",
          one_chunk.longest, " of the optimum; zbv_greedy: ", wave.fits, ", ", wave.optimal, ", ",
          wave.longest, "; v_auto: ", adaptive.fits, ", ", adaptive.optimal, ", ",
          adaptive.longest);
  CHECK(one_chunk.fits == 170);
  CHECK(one_chunk.optimal >= 167);
  CHECK(one_chunk.longest < 1.04);
  CHECK(wave.fits == 169);
  CHECK(wave.optimal >= 95);
  CHECK(wave.longest < 1.55);
  CHECK(adaptive.fits == 169);
  CHECK(adaptive.optimal >= 136);
  CHECK(adaptive.longest < 1.55);
}
