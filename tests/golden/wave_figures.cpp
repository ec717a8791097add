// Makespans of V schedules against those of the systems that they come from, under the same costs
// and limits: none longer.
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

using stretto::job_cost;
using stretto::job_kind;

struct figure {
  std::string schedule, system;
  stretto::shape sizes{};
  stretto::job_table table;
  std::int64_t makespan = -1;  //!< -1: the other system has no answer
  std::string text;
};

stretto::job_table table_of(const stretto::shape& sizes, const std::int64_t (&costs)[5],
                            const std::string& memory, std::int64_t limit) {
  const auto [p, m, v, slices] = sizes;
  stretto::job_table table(p, v);
  table.communication = costs[3];
  if (limit > 0) table.limit.assign(static_cast<std::size_t>(p), limit);
  for (int rank = 0; rank < p; ++rank) {
    if (memory == "B") table.base.push_back(10 + rank);
    for (int chunk = 0; chunk < v; ++chunk) {
      job_cost jobs[3] = {{0, 1, 0}, {0, 0, 0}, {0, -1, 0}};
      if (memory == "A") jobs[0] = {0, 2, 2}, jobs[1] = {0, -1, 1}, jobs[2] = {0, -1, 0};
      if (memory == "B" && chunk == 0)
        jobs[0] = {0, 5, 7}, jobs[1] = {0, -2, 3}, jobs[2] = {0, -3, 1};
      if (memory == "B" && chunk > 0)
        jobs[0] = {0, 4, 6}, jobs[1] = {0, -2, 3}, jobs[2] = {0, -2, 1};
      const bool loss = chunk == v - 1 && rank == (v % 2 == 0 ? 0 : p - 1);
      for (int kind = 0; kind < 3; ++kind) jobs[kind].time = costs[kind] + (loss ? costs[4] : 0);
      table.at(rank, chunk, job_kind::forward) = jobs[0];
      table.at(rank, chunk, job_kind::backward_input) = jobs[1];
      table.at(rank, chunk, job_kind::backward_weight) = jobs[2];
      table.at(rank, chunk, job_kind::backward) = {jobs[1].time + jobs[2].time,
                                                   jobs[1].change + jobs[2].change, 0};
    }
  }
  return table;
}

std::vector<figure> read_figures(const std::string& file) {
  std::ifstream in(std::string(STRETTO_GOLDEN_DIR) + "/" + file);
  if (!in) throw std::runtime_error(file + ": cannot be opened");
  std::vector<figure> all;
  for (std::string text; std::getline(in, text);) {
    if (text.empty() || text.front() == '#') continue;
    std::istringstream words(text);
    figure one;
    std::string bar[3], memory, makespan;
    std::int64_t costs[5];
    std::int64_t limit = 0;
    words >> one.schedule >> one.system >> one.sizes.ranks >> one.sizes.microbatches >>
        one.sizes.chunks >> bar[0] >> costs[0] >> costs[1] >> costs[2] >> costs[3] >> costs[4] >>
        bar[1] >> memory >> limit >> bar[2] >> makespan;
    if (!words || std::any_of(bar, bar + 3, [](const auto& word) { return word != "|"; }) ||
        (memory != "unit" && memory != "A" && memory != "B"))
      throw std::runtime_error(file + ": not a figure: " + text);
    one.table = table_of(one.sizes, costs, memory, limit);
    if (makespan != "none") one.makespan = std::stoll(makespan);
    one.text = text;
    all.push_back(one);
  }
  return all;
}

struct tally {
  int equal = 0;
  int better = 0;
  int worse = 0;
  int served = 0;   //!< the other system has no answer, ours has one
  int refused = 0;  //!< neither has
};

template <class Schedule>
void compare(const Schedule& schedule, const figure& theirs, tally& seen) {
  const stretto::shape& sizes = theirs.sizes;
  const auto view = theirs.table.view();
  REQUIRE(schedule.supports(sizes).ok());
  stretto::job_lists lists(sizes.ranks, schedule.capacity(sizes));
  stretto::job_sink sink = lists.sink();
  const stretto::verdict answer = schedule.emit(sizes, view, sink);
  if (!answer) {
    CHECK(answer.what == stretto::fault::over_limit);
    CHECK(theirs.makespan < 0);
    ++seen.refused;
    return;
  }
  const stretto::replay_input input{.rows = lists.rows(),
                                    .where = stretto::place(schedule.placed(), sizes),
                                    .microbatches = sizes.microbatches,
                                    .costs = view};
  CHECK(stretto::check::schedule(input) == stretto::verdict{});
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
  const stretto::report made = stretto::measure(input, ranks);
  REQUIRE(made.answer.ok());
  if (theirs.makespan < 0) {
    ++seen.served;
    return;
  }
  CHECK(made.makespan <= theirs.makespan);
  ++(made.makespan == theirs.makespan  ? seen.equal
     : made.makespan < theirs.makespan ? seen.better
                                       : seen.worse);
}

}  // namespace

TEST_CASE("no V schedule takes longer than that of the system it comes from") {
  std::map<std::string, tally> tallies;
  for (const figure& theirs : read_figures("wave_figures.txt")) {
    INFO(theirs.text);
    bool known = false;
    stretto::schedule::all::for_each([&](const auto& schedule) {
      if (schedule.name != std::string_view(theirs.schedule)) return;
      known = true;
      compare(schedule, theirs, tallies[theirs.schedule + " " + theirs.system]);
    });
    CHECK(known);
  }
  for (const auto& [name, of] : tallies)
    MESSAGE(name, ": ", of.equal, " equal, ", of.better, " better, ", of.worse, " worse; ",
            of.served, " only ours serves, ", of.refused, " neither");
  const auto cells = [&](const char* name) {
    const tally& of = tallies[name];
    return of.equal + of.better;
  };
  CHECK(cells("zbv sail") == 105);
  CHECK(cells("zbv_greedy sail") == 315);
  CHECK(cells("zbv_greedy paddle_early") == 215);
  CHECK(cells("zbv_greedy paddle_final") == 420);
}
