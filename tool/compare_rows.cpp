#include "compare_rows.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <future>
#include <iostream>
#include <numeric>
#include <thread>

#include "errors.hpp"
#include "make_step.hpp"
#include "read_step.hpp"
#include "step_replicas.hpp"
#include "step_windows.hpp"

namespace stretto::tool {

namespace {

// Each holds a step, which takes 150 to 350 bytes a job of a kind: of all together no more than two
// of the largest.
constexpr unsigned most_threads = 8;
constexpr std::int64_t most_jobs_held = 2 * shape::most_jobs;
// In which costs are cut: limits and bases, up to 10^15 times that, stay in 64 bits.
constexpr std::int64_t most_parts = 1000;

//! Which schedule is being made: with many jobs the searches take their time.
void tell(const std::string& words) {
  static const bool terminal = isatty(STDERR_FILENO) == 1;
  if (terminal) std::cerr << "\r\x1b[K" + words + "\r" << std::flush;
}

}  // namespace

compare_rows::compare_rows(const compare_options& asked) : compare_options(asked) {
  common_.wanted = sizes.sizes();
  common_.spans = objective == "span";
  common_.layers = costs.layers.given();
  chosen_ = chosen_schedules();
  const bool trains = std::any_of(chosen_.begin(), chosen_.end(),
                                  [](const auto& one) { return !one.facts.forward_only; });
  common_.put = windows.of(trains ? std::string() : chosen_.front().facts.name);
  common_.put_searched = windows.searched();
  if (common_.put.any() && sizes.slices > 1)
    throw bad_option("--slices", std::to_string(sizes.slices),
                     "what forwards keep runs again, or is copied, for whole micro-batches alone");
  enter();
  read_.reserve(csv.size());  // steps are not copied
  for (const std::string& path : csv) {
    read_.push_back(read_order("--csv", path));
    fit(path, read_.back());
    entrants_.push_back({nullptr, {}, &read_.back()});
  }
  // Nor is a part of what a pair hides, of any cut.
  common_.time.times = common_.memory.times * finer_unit::of_hidden(costs.hides).times;
}

std::vector<named_schedule> compare_rows::chosen_schedules() const {
  std::vector<named_schedule> told;
  for (const std::string& name : names) {
    named_schedule one = read_named(name);
    if (std::ranges::find(told, one.words, &named_schedule::words) == told.end())
      told.push_back(std::move(one));
  }
  std::vector<named_schedule> all;
  for (const schedule_facts& facts : catalogue()) {
    if (names.empty()) all.push_back({.facts = facts, .words = facts.name});
    for (const named_schedule& one : told)
      if (one.facts.name == facts.name) all.push_back(one);
  }
  return all;
}

shape compare_rows::shape_of(const named_schedule& named, int chunks) const {
  shape made = common_.wanted;
  if (!named.facts.slices) made.slices = 1;
  made.chunks = chunks;
  return made;
}

shape compare_rows::own_shape_of(const named_schedule& named) const {
  for (const int chunks : named.facts.chunks) {
    const shape tried = shape_of(named, chunks);
    if (serves(named.facts.name, tried, named.told).ok()) return tried;
  }
  return shape_of(named, common_.wanted.chunks);
}

template <class Refuse>
void compare_rows::cut_costs(int chunks, const Refuse& refuse) {
  if (chunks == common_.wanted.chunks || costs.layers.given()) return;
  common_.memory.times = std::lcm(common_.memory.times, chunks);
  if (common_.memory.times > most_parts)
    refuse("costs would be cut in " + std::to_string(common_.memory.times) + " parts, at most " +
           std::to_string(most_parts));
}

void compare_rows::enter() {
  std::vector<shape> asked;
  for (const int chunks : sizes.all_chunks.empty() ? std::vector<int>{1} : sizes.all_chunks) {
    shape_options one = sizes;
    one.chunks = chunks;
    asked.push_back(one.sizes());
  }
  common_.several_chunks = asked.size() > 1;
  common_.slices = sizes.all_slices.empty() ? std::vector<int>{1} : sizes.all_slices;
  for (const shape& one : asked)
    jobs_ = std::max(jobs_, std::int64_t{one.ranks} * one.chunks * one.microbatches * one.slices);
  for (const named_schedule& named : chosen_) {
    const std::size_t before = entrants_.size();
    for (const shape& one : asked) {
      const shape tried = shape_of(named, one.chunks);
      if (serves(named.facts.name, tried, named.told).ok())
        entrants_.push_back({&named, tried, nullptr});
    }
    if (entrants_.size() == before) entrants_.push_back({&named, own_shape_of(named), nullptr});
    for (std::size_t at = before, end = entrants_.size(); at < end; ++at) {
      entrant coarser = entrants_[at];
      const auto in = [&](int slices) {
        if (slices >= coarser.cut.slices) return;
        coarser.cut.slices = slices;
        entrants_.push_back(coarser);
      };
      for (const int slices : common_.slices) in(slices);
      in(1);
    }
    for (std::size_t at = before; at < entrants_.size(); ++at)
      cut_costs(entrants_[at].cut.chunks, [&](const std::string& rule) {
        throw bad_option("--chunks", std::to_string(entrants_[at].cut.chunks),
                         rule + "; leave some out");
      });
  }
}

cost_cut compare_rows::cut_into(int slices) const {
  return {.given = common_.wanted.chunks,
          .slices = slices,
          .joined = common_.wanted.slices / slices,
          .times = common_.time.times,
          .amounts = common_.memory.times};
}

void compare_rows::fit(const std::string& path, const step& read) {
  const placement& where = read.made.where;
  const auto refuse = [&](const std::string& rule) { throw bad_option("--csv", path, rule); };
  const auto same = [&](int has, const char* what, const char* option, int asked) {
    if (has != asked)
      refuse("has " + count_of(has, what) + ", not the " + std::to_string(asked) + " of " + option);
  };
  same(where.ranks, "rank", "--ranks", common_.wanted.ranks);
  same(read.microbatches, "micro-batch", "--microbatches", common_.wanted.microbatches);
  if (!costs.layers.given() && where.stages() != where.ranks * read.chunks)
    refuse("has " + count_of(where.stages(), "stage") + " on " + count_of(where.ranks, "rank") +
           ", not as many on each; --layers says what uneven ones take");
  if (read.slices > 1 && std::ranges::count(common_.slices, read.slices) == 0)
    refuse("has " + count_of(read.slices, "slice") + "; --slices " + std::to_string(read.slices) +
           " compares with as many");
  cut_costs(read.chunks, [&](const std::string& rule) {
    refuse("has " + count_of(read.chunks, "chunk") + ", for which " + rule +
           "; give costs of one by --chunks " + std::to_string(read.chunks));
  });
}

std::vector<compared> compare_rows::made_within(std::optional<std::int64_t> limit) {
  if (limit) costs.limit = limit;
  std::vector<std::size_t> order(entrants_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(), [&](std::size_t at) {
    return entrants_[at].made != nullptr && entrants_[at].made->facts.searches;
  });
  std::vector<compared> made(order.size());
  std::vector<std::exception_ptr> failed(order.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t taken = next++; taken < order.size(); taken = next++) {
      const std::size_t at = order[taken];
      try {
        const entrant& one = entrants_[at];
        if (one.made != nullptr)
          tell(one.made->words + ", " + count_of(one.cut.ranks, "rank") + ", " +
               count_of(one.cut.microbatches, "micro-batch"));
        made[at] = one.made != nullptr ? run(*one.made, one.cut) : run(*one.read);
      } catch (...) {
        failed[at] = std::current_exception();
      }
    }
  };
  {
    const auto most =
        static_cast<unsigned>(std::clamp<std::int64_t>(most_jobs_held / jobs_, 1, most_threads));
    const unsigned threads = std::clamp(std::thread::hardware_concurrency(), 1u, most);
    std::vector<std::future<void>> others;  // each waits when it goes
    for (unsigned other = 1; other < threads; ++other)
      others.push_back(std::async(std::launch::async, work));
    work();
  }
  tell("");
  for (const std::exception_ptr& one : failed)
    if (one) std::rethrow_exception(one);
  return made;
}

compared compare_rows::run(const named_schedule& named, const shape& cut) const {
  const schedule_facts& facts = named.facts;
  compared result;
  result.name = named.words;
  result.forward_only = facts.forward_only;
  result.chunks = cut.chunks;
  result.slices = cut.slices;
  schedule_options options;
  static_cast<schedule::options&>(options) = named.told;
  if (!options.merge) options.merge = schedule::spelt<schedule::merge_kind>(merge);
  options.gathered = costs.gathered.value_or(options.gathered);
  result.choices = facts.forward_only ? std::vector<memory::windows>(1)
                                      : windows.choices(facts.name, cut.microbatches, costs);
  if (common_.spans && (options.merge != schedule::merge_kind::none ||
                        std::count(facts.options.begin(), facts.options.end(), "--objective") > 0))
    options.objective = schedule::objective_kind::span;
  const cost_options mine = costs.for_step(facts.forward_only, result.choices.back().offload.any());
  std::optional<step> made;
  try {
    made = make_shortest(facts.name, cut, options, result.choices, mine, cut_into(cut.slices),
                         &result.why);
  } catch (const layers_refused& refused) {
    result.why = {refused.why};
  }
  if (!made) return result;
  if (!facts.forward_only)
    refuse_windows(said_of_schedules(), windows, *made,
                   [&](std::int64_t amount) { return common_.memory.text(amount); });
  measure(*made, result);
  return result;
}

cost_options compare_rows::said_of_schedules() const {
  cost_options mine = costs;
  const auto any = [&](job_kind kind) {
    return std::ranges::any_of(read_, [&](const step& one) { return one.has(kind); });
  };
  if (any(job_kind::recompute)) mine.again.clear();
  if (any(job_kind::offload)) mine.copy.clear();
  return mine;
}

compared compare_rows::run(step& read) const {
  compared result;
  result.name = std::filesystem::path(read.schedule).filename().string();
  result.file = read.schedule;
  result.forward_only = read.forward_only;
  result.chunks = read.chunks;
  result.slices = read.slices;
  try {
    prove_order(read, costs, cut_into(read.slices), &result.why,
                common_.spans ? schedule::objective_kind::span : schedule::objective_kind::flush);
  } catch (const layers_refused& refused) {
    result.why = {refused.why};
  }
  if (result.why.found.ok()) measure(read, result);
  return result;
}

void compare_rows::measure(const step& made, compared& result) const {
  result.put = made.put;
  result.all = simulate(made, false);
  result.by_gathers = by_gathers(made, result.all.all);
  result.link = busiest_link(made.input());
  result.layers = made.layers;
  result.sums = made.sums;
  result.gathers = made.gathers;
  result.parts = made.made.where;
  result.costs = made.made.costs;
  // Which of a file's micro-batches run again, or are copied, no window says; within a limit those
  // may be what makes the step short.
  if (made.imported && (made.has(job_kind::recompute) || made.has(job_kind::offload))) {
    result.costs.limit.clear();
    for (const rank_report& rank : result.all.ranks)
      result.own_work = std::max(result.own_work, rank.busy);
  }
  result.find_bound();
}

}  // namespace stretto::tool
