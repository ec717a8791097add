#include "pipeline/timeline.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "stretto/executor/trace.hpp"
#include "stretto/model/replay.hpp"

namespace train {
namespace {

using stretto::executor::trace_record;

//! From the first to the last of what it was told.
struct time_span {
  std::int64_t start = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = 0;

  void add(const trace_record& each) {
    start = std::min(start, each.start);
    end = std::max(end, each.end);
  }
};

//! The compute jobs of one step, of each rank's first worker.
struct traced_step {
  std::vector<stretto::picture_bar> bars;
  std::vector<std::int64_t> busy;  // of each rank
  std::vector<time_span> own;      // and from its first instruction to its last
  time_span all;                   // jobs of all ranks

  double idle(std::size_t rank, bool one_clock) const {
    const time_span& of = one_clock ? all : own[rank];
    return 1 - static_cast<double>(busy[rank]) /
                   static_cast<double>(std::max<std::int64_t>(1, of.end - of.start));
  }
};

std::map<std::int64_t, traced_step> steps_of(const pipeline& from, trace_records trace) {
  std::map<std::int64_t, traced_step> steps;
  for (const trace_record& each : trace) {
    if (each.rank % from.workers() != 0) continue;
    const int rank = each.rank / from.workers();
    traced_step& step = steps[each.step];
    step.busy.resize(static_cast<std::size_t>(from.where().ranks));
    step.own.resize(step.busy.size());
    step.own[static_cast<std::size_t>(rank)].add(each);
    const auto& plan = from.plans()[static_cast<std::size_t>(each.rank)];
    const auto& run = plan.instructions[static_cast<std::size_t>(each.instruction)];
    if (run.act != stretto::action::run || !stretto::is_compute(run.what.kind)) continue;
    // Ops of a job that follow one another are one bar; records are in the order of the plans.
    if (!step.bars.empty() && step.bars.back().rank == rank && step.bars.back().what == run.what)
      step.bars.back().when.end = each.end;
    else
      step.bars.push_back(
          {rank, from.where().chunk_of(run.what), run.what, {each.start, each.end}, 0});
    step.busy[static_cast<std::size_t>(rank)] += each.end - each.start;
    step.all.add(each);
  }
  return steps;
}

stretto::replay_input input_of(const pipeline& from, const stretto::job_table& costs) {
  return {.rows = from.plan().jobs(),
          .where = from.where(),
          .microbatches = from.sizes().microbatches,
          .slices = from.sizes().slices,
          .costs = costs.view()};
}

//! Of a step's jobs, from the first one's start on.
std::vector<stretto::critical_job> path_of(const traced_step& step,
                                           const stretto::replay_input& scheduled) {
  using work = std::tuple<stretto::job_kind, int, int, int>;
  const auto key = [](const stretto::job& of) {
    return work{of.kind, of.stage, of.microbatch, of.slice};
  };
  std::map<work, stretto::job_time> times;
  for (const stretto::picture_bar& bar : step.bars) {
    const stretto::job_time now{bar.when.start - step.all.start, bar.when.end - step.all.start};
    // Ops of a pair's jobs stand between one another, so that a job has several bars.
    stretto::job_time& all = times.try_emplace(key(bar.what), now).first->second;
    all = {std::min(all.start, now.start), std::max(all.end, now.end)};
  }
  return critical_path(scheduled, measured_timeline(scheduled.rows, [&](const stretto::job& of) {
                         const auto found = times.find(key(of));
                         return found == times.end() ? nullptr : &found->second;
                       }));
}

}  // namespace

step_timeline replay(const pipeline& from, const stretto::job_table& costs) {
  const stretto::replay_input input = input_of(from, costs);
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(from.where().ranks));
  std::vector<stretto::job_time> times(ranks.size() * static_cast<std::size_t>(input.rows.stride));
  const stretto::report all = stretto::measure(input, ranks, times);
  step_timeline made;
  made.picture = stretto::draw_simulated(input, all, times, false);
  made.bubble = made.drawn_bubble = all.bubble.value();
  for (const auto& each : ranks)
    made.idle.push_back(static_cast<double>(each.idle) /
                        static_cast<double>(std::max<std::int64_t>(1, all.makespan)));
  return made;
}

std::optional<sum_times> measured_sums(const pipeline& from, trace_records trace, sums_over over) {
  using of_group = std::pair<int, int>;  // which sum of the group's in the step
  struct worker_times {
    std::vector<stretto::job_time> jobs;
    std::vector<std::pair<of_group, stretto::job_time>> sums;
    std::map<int, int> seen;  // by group
    std::int64_t last = 0;    // when the last job ended
  };
  std::map<std::pair<std::int64_t, int>, worker_times> workers;         // by step and rank
  std::map<std::pair<std::int64_t, of_group>, std::int64_t> all_there;  // by step
  for (const trace_record& each : trace) {
    const auto& plan = from.plans()[static_cast<std::size_t>(each.rank)];
    const auto& run = plan.instructions[static_cast<std::size_t>(each.instruction)];
    worker_times& here = workers[{each.step, each.rank}];
    if (run.act == stretto::action::run && stretto::is_compute(run.what.kind)) {
      here.jobs.push_back({each.start, each.end});
      here.last = std::max(here.last, each.end);
    } else if (is_sum(run.act) &&
               (over == sums_over::shards
                    ? plan.part_of(each.instruction).op >= 0
                    : plan.groups[static_cast<std::size_t>(run.peer)].data_parallel)) {
      const of_group which{run.peer, here.seen[run.peer]++};  // all members sum in one order
      here.sums.push_back({which, {each.start, each.end}});
      std::int64_t& there = all_there[{each.step, which}];
      there = std::max(there, each.start);
    }
  }
  double sum = 0, in_time = 0, hidden = 0;
  for (const auto& [when, here] : workers)
    for (const auto& [group, one] : here.sums) {
      const std::int64_t start = all_there[{when.first, group}];
      const auto before = [&](std::int64_t from_here, std::int64_t to) {
        return static_cast<double>(
            std::max<std::int64_t>(0, std::min(one.end, to) - std::max(start, from_here)));
      };
      sum += static_cast<double>(one.end - start);
      in_time += before(start, here.last);
      // Jobs, or ops, of a worker run one by one.
      auto job = std::ranges::lower_bound(here.jobs, start, {}, &stretto::job_time::end);
      for (; job != here.jobs.end() && job->start < one.end; ++job)
        hidden += before(job->start, job->end);
    }
  if (sum <= 0) return std::nullopt;
  return sum_times{sum / 1e6 / static_cast<double>(workers.size()), in_time / sum, hidden / sum};
}

std::optional<step_timeline> measured(const pipeline& from, trace_records trace, bool one_clock) {
  const auto steps = steps_of(from, trace);
  if (steps.empty()) return std::nullopt;
  step_timeline made;
  made.idle.resize(static_cast<std::size_t>(from.where().ranks));
  for (const auto& [number, step] : steps) {
    double most = 0;
    for (std::size_t rank = 0; rank < made.idle.size(); ++rank) {
      const double idle = step.idle(rank, one_clock);
      made.idle[rank] += idle / static_cast<double>(steps.size());
      most = std::max(most, idle);
    }
    made.bubble += most / static_cast<double>(steps.size());
    made.drawn_bubble = most;
  }
  if (!one_clock) return made;
  // What messages take is not known beforehand.
  const stretto::job_table no_hops(from.where().ranks, from.where().chunks);
  const stretto::replay_input scheduled = input_of(from, no_hops);
  std::vector<stretto::critical_job> path;
  for (const auto& [number, step] : steps) {
    path = path_of(step, scheduled);
    const stretto::path_shares shares = shares_of(path);
    made.critical.jobs += shares.jobs;
    made.critical.messages += shares.messages;
    made.critical.lost += shares.lost;
  }
  const traced_step& last = steps.rbegin()->second;
  made.picture.ranks = from.where().ranks;
  made.picture.end = last.all.end - last.all.start;
  for (stretto::picture_bar bar : last.bars) {
    bar.when.start -= last.all.start;
    bar.when.end -= last.all.start;
    made.picture.bars.push_back(bar);
  }
  made.picture = with_critical_path(std::move(made.picture), scheduled, path);
  return made;
}

}  // namespace train
