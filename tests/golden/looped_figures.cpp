// Makespans against those of the authors' generators, under the same costs and limits: none worse.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "laws/order_laws.hpp"
#include "stretto/check/all.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/all.hpp"

namespace {

using namespace stretto::schedule;

struct figure {
  std::string schedule;
  stretto::shape sizes{};
  int group = 0;
  stretto::unit_costs costs{};
  std::int64_t limit = 0;  //!< 0: none
  std::int64_t makespan = 0;
  std::int64_t span = 0;
  std::int64_t peak = 0;
};

std::vector<figure> read_figures(const std::string& file) {
  std::ifstream in(std::string(STRETTO_GOLDEN_DIR) + "/" + file);
  if (!in) throw std::runtime_error(file + ": cannot be opened");
  std::vector<figure> all;
  int line = 0;
  for (std::string text; std::getline(in, text);) {
    ++line;
    if (text.empty() || text.front() == '#') continue;
    std::istringstream words(text);
    figure one;
    std::string bar[4];
    std::string cut;  // GROUP or k=SLICES
    auto& c = one.costs;
    words >> one.schedule >> one.sizes.ranks >> one.sizes.microbatches >> one.sizes.chunks >> cut >>
        bar[0] >> c.forward >> c.backward_input >> c.backward_weight >> c.communication >> bar[1] >>
        c.memory_forward >> c.memory_backward_input >> c.memory_backward_weight >> bar[2] >>
        one.limit >> bar[3] >> one.makespan >> one.span >> one.peak;
    if (!words || std::any_of(bar, bar + 4, [](const auto& word) { return word != "|"; }))
      throw std::runtime_error(file + ":" + std::to_string(line) + ": not a figure");
    if (cut.starts_with("k="))
      one.sizes.slices = std::stoi(cut.substr(2));
    else
      one.group = std::stoi(cut);
    all.push_back(one);
  }
  return all;
}

struct outcome {
  std::int64_t makespan = 0;
  std::int64_t span = 0;
  std::int64_t peak = 0;
};

template <class Schedule>
outcome run(const Schedule& schedule, const figure& asked) {
  const stretto::shape& sizes = asked.sizes;
  stretto::job_table table(sizes.ranks, sizes.chunks, asked.costs);
  if (asked.limit > 0) table.limit.assign(static_cast<std::size_t>(sizes.ranks), asked.limit);
  REQUIRE(schedule.supports(sizes).ok());
  stretto::job_lists lists(sizes.ranks, schedule.capacity(sizes));
  stretto::job_sink sink = lists.sink();
  REQUIRE(schedule.emit(sizes, table.view(), sink).ok());
  const stretto::replay_input input{.rows = lists.rows(),
                                    .where = stretto::place(schedule.placed(), sizes),
                                    .microbatches = sizes.microbatches,
                                    .slices = sizes.slices,
                                    .costs = table.view()};
  REQUIRE(stretto::check::schedule(input) == stretto::verdict{});
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
  std::vector<stretto::job_time> times(static_cast<std::size_t>(sizes.ranks) *
                                       static_cast<std::size_t>(lists.rows().stride));
  const stretto::report made = stretto::measure(input, ranks, times);
  REQUIRE(made.answer.ok());
  outcome found{made.makespan, 0, 0};
  for (int rank = 0; rank < sizes.ranks; ++rank) {
    const auto first = static_cast<std::size_t>(rank * lists.rows().stride);
    const auto last = first + lists.rows().row(rank).size() - 1;
    found.span = std::max(found.span, times[last].end - times[first].start);
    found.peak = std::max(found.peak, ranks[static_cast<std::size_t>(rank)].peak);
  }
  return found;
}

struct tally {
  int equal = 0;
  int better = 0;
  int worse = 0;

  void count(std::int64_t ours, std::int64_t theirs) {
    ++(ours == theirs ? equal : ours < theirs ? better : worse);
  }
};

}  // namespace

TEST_CASE("no makespan is longer than the authors', no peak above their limit") {
  struct score {
    tally makespan, span, peak;
  };
  std::map<std::string, score> scores;
  std::vector<figure> figures = read_figures("looped_figures.txt");
  for (const figure& sliced : read_figures("sliced_figures.txt")) figures.push_back(sliced);
  for (const figure& theirs : figures) {
    INFO(theirs.schedule, " ", laws::words(theirs.sizes), " f=", theirs.costs.forward,
         " c=", theirs.costs.communication, " limit ", theirs.limit);
    bool known = false;
    all::for_each([&](auto schedule) {
      if (schedule.name != std::string_view(theirs.schedule)) return;
      known = true;
      if constexpr (requires { schedule.group; }) schedule.group = theirs.group;
      const outcome ours = run(schedule, theirs);
      score& of = scores[theirs.schedule];
      of.makespan.count(ours.makespan, theirs.makespan);
      CHECK(ours.makespan <= theirs.makespan);
      if (theirs.limit > 0)
        CHECK(ours.peak <= theirs.limit);
      else
        CHECK(ours.peak <= theirs.peak);
      of.peak.count(ours.peak, theirs.peak);
      if constexpr (requires { schedule.objective; }) {
        schedule.objective = objective_kind::span;
        of.span.count(run(schedule, theirs).span, theirs.span);
        CHECK(run(schedule, theirs).span <= theirs.span);
      } else {
        of.span.count(ours.span, theirs.span);
      }
    });
    CHECK(known);
  }
  for (const auto& [name, of] : scores)
    MESSAGE(name, ": makespan ", of.makespan.equal, " equal, ", of.makespan.better, " better, ",
            of.makespan.worse, " worse; span ", of.span.equal, " ", of.span.better, " ",
            of.span.worse, "; peak ", of.peak.equal, " ", of.peak.better, " ", of.peak.worse);
  const auto cells = [&](const char* name) {
    const tally& of = scores[name].makespan;
    return of.equal + of.better;
  };
  CHECK(cells("1f1b") == 60);
  CHECK(cells("interleaved") == 210);
  CHECK(cells("grouped") == 315);
  CHECK(cells("zb_h1") == 60);
  CHECK(cells("zb_h1_light") == 60);
  CHECK(cells("zb_h2") == 48);
  CHECK(cells("zb_auto") == 360);
  CHECK(cells("seq_1f1b") == 120);
}
