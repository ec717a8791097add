// Run-time generation of schedules and plans, by compute job:
//
//   emit      the schedule alone, into vectors, all jobs as long as each other
//   search    the same of a search that must try all that it knows
//   slowest   of all that it knows, the one that takes longest by itself
//   rules     complete, ordered, live and bounded, on emitted lists
//   messages  one global order; sends and receives; the step's ends
//   plans     all of it, with streams, buffers and events, and all seven rules on the result
//
// At 64 ranks, 1024 micro-batches and 2 chunks a closed form should emit a job in at most 20 ns, an
// order that is made for the costs in at most 100 ns a pass over the jobs. A search ends at an
// order that cannot be beaten: of jobs that are as long as each other mostly the first.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "stretto/schedule/by_name.hpp"
#include "stretto/stretto.hpp"

namespace {

using benchmark::State;
using stretto::shape;
using stretto::schedule::any;

//! Prints the time per job and what it should be at most, in seconds; 0: no target.
void count_jobs(State& state, std::int64_t jobs, double at_most = 0) {
  using benchmark::Counter;
  state.counters["jobs"] = static_cast<double>(jobs);
  state.counters["per_job"] =
      Counter(static_cast<double>(jobs), Counter::kIsIterationInvariantRate | Counter::kInvert);
  if (at_most > 0) state.counters["per_job_at_most"] = at_most;
}

struct emitted {
  any schedule;
  shape sizes;
  stretto::job_table table;
  stretto::job_lists lists;
  stretto::verdict answer{};

  emitted(const any& schedule_, const shape& sizes_, const stretto::unit_costs& costs = {})
      : schedule(schedule_),
        sizes(sizes_),
        table(sizes.ranks, sizes.chunks, costs),
        lists(sizes.ranks, schedule.capacity(sizes)) {
    emit();
  }
  void emit() {
    stretto::job_sink out = lists.sink();
    for (int rank = 0; rank < out.ranks; ++rank) out.counts[rank] = 0;
    answer = schedule.emit(sizes, table.view(), out);
  }
  stretto::replay_input input() const {
    return {lists.rows(),
            place(schedule.placed(), sizes),
            sizes.microbatches,
            sizes.slices,
            table.view(),
            false,
            {}};
  }
};

//! Ends the measurement when what is measured has failed.
bool refused(State& state, const stretto::verdict& answer) {
  if (!answer.ok()) state.SkipWithError(std::string(to_text(answer).view()).c_str());
  return !answer.ok();
}

//! Variants of a search; 0: it is none.
template <class Schedule>
constexpr int variants() {
  if constexpr (stretto::schedule::Search<Schedule>) return Schedule::variants;
  return 0;
}

//! Greedy passes over the jobs that an emission takes: of a search one that scores what cannot be
//! beaten and one that writes it. 0: a closed form.
template <class Schedule>
constexpr int passes() {
  namespace schedules = stretto::schedule;
  if (variants<Schedule>() > 0) return 2;
  return std::is_same_v<Schedule, schedules::v_half> || std::is_same_v<Schedule, schedules::v_min>;
}

bool has_target(const shape& sizes) {
  return sizes.ranks == 64 && sizes.microbatches == 1024;
}

void emit(State& state, emitted step, int passes) {
  const shape& sizes = step.sizes;
  for (auto _ : state) {
    step.emit();
    benchmark::ClobberMemory();
  }
  if (refused(state, step.answer)) return;
  const double at_most = passes > 0 ? passes * 100e-9 : 20e-9;
  count_jobs(state, step.lists.rows().total(), has_target(sizes) ? at_most : 0);
}

//! Each variant scored by itself, once; the longest is told.
void slowest(State& state, const any& made, emitted step, int variants) {
  using clock = std::chrono::steady_clock;
  double longest = 0;
  int which = 0;
  for (auto _ : state) {
    for (int variant = 0; variant < variants; ++variant) {
      const clock::time_point from = clock::now();
      benchmark::DoNotOptimize(made.score(step.sizes, step.table.view(), variant));
      const double took = std::chrono::duration<double>(clock::now() - from).count();
      if (took > longest) longest = took, which = variant;
    }
    state.SetIterationTime(longest);
  }
  state.counters["variant"] = which;
  count_jobs(state, step.lists.rows().total(), has_target(step.sizes) ? 100e-9 : 0);
}

void rules(State& state, const any& schedule, const shape& sizes) {
  const emitted step(schedule, sizes);
  stretto::verdict answer = step.answer;
  for (auto _ : state) benchmark::DoNotOptimize(answer = stretto::check::schedule(step.input()));
  if (!refused(state, answer)) count_jobs(state, step.lists.rows().total());
}

void messages(State& state, const any& schedule, const shape& sizes) {
  namespace lowering = stretto::lowering;
  const emitted step(schedule, sizes);
  const stretto::replay_input compute = step.input();
  const int room = lowering::with_ends(lowering::with_messages(compute.rows.stride), 0);
  stretto::job_lists lists(sizes.ranks, room);
  std::vector<std::int32_t> turns(static_cast<std::size_t>(compute.rows.total()));
  stretto::verdict answer = step.answer;
  for (auto _ : state) {
    stretto::job_sink out = lists.sink();
    for (int rank = 0; rank < out.ranks; ++rank) out.counts[rank] = 0;
    lowering::order_sink order{turns.data()};
    answer = lowering::add_messages(compute, out, &order);
    lowering::append_ends(out, compute.where, {}, true);
    benchmark::ClobberMemory();
  }
  if (!refused(state, answer)) count_jobs(state, compute.rows.total());
}

void plans(State& state, const any& schedule, const shape& sizes) {
  const stretto::job_table table(sizes.ranks, sizes.chunks);
  stretto::verdict answer;
  std::int64_t jobs = 0;
  for (auto _ : state) {
    const stretto::planned made(schedule, sizes, table.view(), stretto::overlap::separate{});
    answer = made.answer();
    jobs = made.jobs().total();
  }
  if (!refused(state, answer)) count_jobs(state, jobs);
}

}  // namespace

int main(int count, char** words) {
  stretto::schedule::all::for_each([]<class Schedule>(const Schedule& schedule) {
    const auto add = [&](std::string_view part, auto run, shape sizes) {
      if (!schedule.supports(sizes).ok()) sizes.chunks = 3 - sizes.chunks;
      if (!schedule.supports(sizes).ok()) return;
      const std::string name = std::string(part) + '/' + std::string(Schedule::name) + '/' +
                               std::to_string(sizes.ranks) + 'x' +
                               std::to_string(sizes.microbatches) + 'x' +
                               std::to_string(sizes.chunks);
      auto* const added = benchmark::RegisterBenchmark(name.c_str(), [=](State& state) {
                            run(state, sizes);
                          })->Unit(benchmark::kMillisecond);
      if (part == "slowest") added->UseManualTime()->Iterations(1);
    };
    const any made = schedule;
    const auto emission = [made](State& state, const shape& sizes) {
      emit(state, {made, sizes}, passes<Schedule>());
    };
    // Costs and a limit under which the lower bound is out of reach; all variants, then the best.
    const auto limited = [made](const shape& sizes) {
      emitted step(made, sizes, {10, 12, 8, 2});
      step.table.limit.assign(static_cast<std::size_t>(sizes.ranks), sizes.ranks * sizes.chunks);
      return step;
    };
    const auto search = [limited](State& state, const shape& sizes) {
      emit(state, limited(sizes), variants<Schedule>() + 1);
    };
    const auto each = [made, limited](State& state, const shape& sizes) {
      slowest(state, made, limited(sizes), variants<Schedule>());
    };
    const auto part = [made](void (*run)(State&, const any&, const shape&)) {
      return [made, run](State& state, const shape& sizes) { run(state, made, sizes); };
    };
    for (const shape& sizes : {shape{8, 64, 2}, shape{64, 1024, 2}, shape{1024, 2048, 1}}) {
      add("emit", emission, sizes);
      if (variants<Schedule>() > 0 && sizes.ranks < 1024) add("search", search, sizes);
      add("rules", part(rules), sizes);
      add("messages", part(messages), sizes);
    }
    if (variants<Schedule>() > 0)
      for (const shape& sizes : {shape{64, 1024, 2}, shape{8, 16384, 2}, shape{1024, 2048, 1}})
        add("slowest", each, sizes);
    for (const shape& sizes : {shape{8, 64, 2}, shape{64, 256, 2}, shape{1024, 512, 1}})
      add("plans", part(plans), sizes);
  });
  benchmark::Initialize(&count, words);
  if (benchmark::ReportUnrecognizedArguments(count, words)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
