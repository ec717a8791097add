#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "stretto/check/all.hpp"
#include "stretto/model/bound.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/all.hpp"
#include "stretto/schedule/any.hpp"

//! Figures of other systems' schedules, read from the *_figures.txt of this folder (each says what
//! its lines hold), and ours under the same costs and limits. For the tests and the benchmark.
namespace golden {

//! What another system's schedule takes.
struct figure {
  std::string schedule;  //!< ours of that kind
  std::string system;    //!< whose, where a file has more than one
  stretto::shape sizes{};
  int group = 0;
  stretto::job_table table;
  std::int64_t limit = 0;      //!< 0: none
  std::int64_t makespan = -1;  //!< -1: the other system has no answer
  std::int64_t span = -1;      //!< -1: not recorded; so is
  std::int64_t peak = -1;
  //! Where jobs are paired: makespan and peak when the halves run one after the other.
  std::int64_t apart = -1;
  std::int64_t apart_peak = -1;
  std::string text;  //!< its line
};

namespace detail {

using stretto::job_cost;
using stretto::job_kind;

//! Costs f b w c and the loss in each job of the last stage; memory models are Paddle's.
inline stretto::job_table modelled(const stretto::shape& sizes, const std::int64_t (&costs)[5],
                                   char memory) {
  const int p = sizes.ranks;
  stretto::job_table table(p, sizes.chunks);
  table.communication = costs[3];
  for (int rank = 0; rank < p; ++rank) {
    if (memory == 'B') table.base.push_back(10 + rank);
    for (int chunk = 0; chunk < sizes.chunks; ++chunk) {
      job_cost jobs[3] = {{0, 1, 0}, {0, 0, 0}, {0, -1, 0}};
      if (memory == 'A') jobs[0] = {0, 2, 2}, jobs[1] = {0, -1, 1}, jobs[2] = {0, -1, 0};
      if (memory == 'B' && chunk == 0)
        jobs[0] = {0, 5, 7}, jobs[1] = {0, -2, 3}, jobs[2] = {0, -3, 1};
      if (memory == 'B' && chunk > 0)
        jobs[0] = {0, 4, 6}, jobs[1] = {0, -2, 3}, jobs[2] = {0, -2, 1};
      const bool last = chunk == sizes.chunks - 1 && rank == (sizes.chunks % 2 == 0 ? 0 : p - 1);
      for (int kind = 0; kind < 3; ++kind) jobs[kind].time = costs[kind] + (last ? costs[4] : 0);
      table.at(rank, chunk, job_kind::forward) = jobs[0];
      table.at(rank, chunk, job_kind::backward_input) = jobs[1];
      table.at(rank, chunk, job_kind::backward_weight) = jobs[2];
      table.at(rank, chunk, job_kind::backward) = {jobs[1].time + jobs[2].time,
                                                   jobs[1].change + jobs[2].change, 0};
    }
  }
  return table;
}

//! `p m v GROUP | f b w c | memory f b w | limit | makespan span peak`; k=SLICES for a group.
inline void read_plain(std::istringstream& words, figure& one, std::vector<std::string>& bars) {
  std::string cut;
  stretto::unit_costs c;
  words >> one.sizes.ranks >> one.sizes.microbatches >> one.sizes.chunks >> cut >> bars[0] >>
      c.forward >> c.backward_input >> c.backward_weight >> c.communication >> bars[1] >>
      c.memory_forward >> c.memory_backward_input >> c.memory_backward_weight >> bars[2] >>
      one.limit >> bars[3] >> one.makespan >> one.span >> one.peak;
  if (!words) return;
  if (cut.starts_with("k="))
    one.sizes.slices = std::stoi(cut.substr(2));
  else
    one.group = std::stoi(cut);
  one.table = stretto::job_table(one.sizes.ranks, one.sizes.chunks, c);
}

//! `SYSTEM p m v | f b w c loss | MEMORY limit | makespan [span]`
inline void read_modelled(std::istringstream& words, figure& one, std::vector<std::string>& bars) {
  std::string memory, makespan;
  std::int64_t costs[5]{};
  bars.pop_back();
  words >> one.system >> one.sizes.ranks >> one.sizes.microbatches >> one.sizes.chunks >> bars[0] >>
      costs[0] >> costs[1] >> costs[2] >> costs[3] >> costs[4] >> bars[1] >> memory >> one.limit >>
      bars[2] >> makespan;
  if (!words) return;
  if (memory != "unit" && memory != "A" && memory != "B") words.setstate(std::ios::failbit);
  if (makespan != "none") one.makespan = std::stoll(makespan);
  if (std::int64_t span = 0; words >> span) one.span = span;
  words.clear();
  one.table = modelled(one.sizes, costs, memory.front());
}

//! `p m f b w c memory f b w, makespan, makespan with pairs as nodes, peak without`
inline void read_paired(std::istringstream& words, figure& one) {
  stretto::unit_costs c;
  words >> one.sizes.ranks >> one.sizes.microbatches >> c.forward >> c.backward_input >>
      c.backward_weight >> c.communication >> c.memory_forward >> c.memory_backward_input >>
      c.memory_backward_weight >> one.apart >> one.makespan >> one.apart_peak;
  stretto::schedule::all::for_each([&](const auto& schedule) {
    if (schedule.name != std::string_view(one.schedule)) return;
    if (!schedule.supports(one.sizes).ok()) one.sizes.chunks = 2;
    const auto where = stretto::place(schedule.placed(), one.sizes);
    one.table = stretto::job_table(where.ranks, where.chunks, c);
  });
}

}  // namespace detail

//! @throws std::runtime_error naming file and line
inline std::vector<figure> read_figures(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(path + ": cannot be opened");
  std::vector<figure> all;
  int line = 0;
  for (std::string text; std::getline(in, text);) {
    ++line;
    if (text.empty() || text.front() == '#') continue;
    std::istringstream words(text);
    figure one;
    one.text = text;
    words >> one.schedule >> std::ws;
    std::vector<std::string> bars(4);
    if (text.find('|') == std::string::npos)
      bars.clear(), detail::read_paired(words, one);
    else if (std::isdigit(words.peek()) != 0)
      detail::read_plain(words, one, bars);
    else
      detail::read_modelled(words, one, bars);
    if (!words || std::any_of(bars.begin(), bars.end(), [](auto& word) { return word != "|"; }))
      throw std::runtime_error(path + ":" + std::to_string(line) + ": not a figure");
    if (one.limit > 0) one.table.limit.assign(static_cast<std::size_t>(one.sizes.ranks), one.limit);
    all.push_back(std::move(one));
  }
  return all;
}

//! What ours takes.
struct outcome {
  stretto::verdict answer;  //!< of the schedule, then of every rule on its lists
  std::int64_t makespan = 0;
  std::int64_t span = 0;
  std::int64_t peak = 0;
  std::int64_t busy = 0;  //!< of the rank that works least
  stretto::step_bound bound;
};

//! Ours under the figure's costs and limit; with `pairs` off, the halves one after the other.
inline outcome run(const stretto::schedule::any& schedule, const figure& asked, bool pairs = true) {
  const stretto::shape& sizes = asked.sizes;
  outcome found;
  found.answer = schedule.supports(sizes);
  if (!found.answer) return found;
  stretto::job_lists lists(sizes.ranks, schedule.capacity(sizes));
  stretto::job_sink sink = lists.sink();
  found.answer = schedule.emit(sizes, asked.table.view(), sink);
  if (!found.answer) return found;
  for (int rank = 0; rank < sizes.ranks && !pairs; ++rank)
    for (int step = 0; step < sink.counts[rank]; ++step)
      sink.items[static_cast<std::ptrdiff_t>(rank) * sink.stride + step].paired = false;
  const stretto::replay_input input{.rows = lists.rows(),
                                    .where = stretto::place(schedule.placed(), sizes),
                                    .microbatches = sizes.microbatches,
                                    .slices = sizes.slices,
                                    .costs = asked.table.view()};
  found.answer = stretto::check::schedule(input);
  if (!found.answer) return found;
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
  const stretto::report made = stretto::measure(input, ranks);
  found.answer = made.answer;
  found.makespan = made.makespan;
  found.span = made.span;
  found.busy = made.makespan;
  for (const stretto::rank_report& rank : ranks) {
    found.peak = std::max(found.peak, rank.peak);
    found.busy = std::min(found.busy, rank.busy);
  }
  // Slices run as micro-batches would, but for what more orders them.
  stretto::placement parts = input.where;
  parts.microbatches *= sizes.slices;
  found.bound = stretto::lower_bound(parts, input.costs);
  return found;
}

//! Calls `visit` with our schedule of the figure's name, set as the figure asks.
//! @return whether there is one
template <class Visitor>
bool with_schedule(const figure& asked, Visitor&& visit) {
  bool known = false;
  stretto::schedule::all::for_each([&](auto schedule) {
    if (schedule.name != std::string_view(asked.schedule)) return;
    known = true;
    if constexpr (requires { schedule.group; }) schedule.group = asked.group;
    visit(schedule);
  });
  return known;
}

//! How ours compares, figure by figure.
struct tally {
  int equal = 0;
  int better = 0;
  int worse = 0;

  int cells() const { return equal + better + worse; }
  void count(std::int64_t ours, std::int64_t theirs) {
    ++(ours == theirs ? equal : ours < theirs ? better : worse);
  }
};

}  // namespace golden
