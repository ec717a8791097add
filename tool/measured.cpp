#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.hpp"
#include "critical.hpp"
#include "errors.hpp"
#include "simulated.hpp"
#include "stretto/plan/measured_path.hpp"
#include "table.hpp"
#include "trace_orders.hpp"
#include "trace_path.hpp"
#include "traced_step.hpp"

namespace stretto::tool {

namespace {

using nlohmann::ordered_json;

//! What of a step each rank computes, from the first job's start to the last one's end.
struct measured_step {
  std::int64_t number = 0;
  std::int64_t makespan = 0;  // times in nanoseconds
  std::vector<std::int64_t> busy{};
  std::string broken{};              // the first order that it breaks
  std::vector<critical_job> path{};  // of one that breaks none
  path_shares shares{};

  std::int64_t idle(std::size_t rank) const { return makespan - busy[rank]; }
  double part(std::int64_t time) const {
    return static_cast<double>(time) / static_cast<double>(std::max<std::int64_t>(1, makespan));
  }
  double bubble() const { return part(makespan - *std::ranges::min_element(busy)); }
};

//! For how long something of a rank runs: the halves of a pair may run at once.
std::vector<std::int64_t> busy_of(const std::vector<traced>& by_start, int ranks) {
  std::vector<std::int64_t> busy(static_cast<std::size_t>(ranks)), until(busy);
  for (const traced& one : by_start) {
    if (!is_job(one)) continue;
    const auto rank = static_cast<std::size_t>(one.rank);
    busy[rank] += std::max<std::int64_t>(0, one.when.end - std::max(one.when.start, until[rank]));
    until[rank] = std::max(until[rank], one.when.end);
  }
  return busy;
}

measured_step measure(const traced_step& both, std::int64_t number) {
  const std::vector<traced> all = both.trace.step(number);
  const replay_input scheduled = both.predicted.input();
  measured_step made{.number = number,
                     .makespan = makespan_of(all),
                     .busy = busy_of(all, both.trace.ranks()),
                     .broken = broken_order(both.trace, number, scheduled.rows)};
  // Where something ran before what it needs, nothing was as long as the step for that reason.
  if (made.broken.empty()) made.path = measured_path(all, scheduled);
  made.shares = shares_of(made.path);
  return made;
}

//! What is told of a trace.
struct told_trace {
  const traced_step& both;
  simulated all;  //!< of the step as it is predicted
  path_shares predicted_path;
  std::vector<measured_step> steps{};
  const measured_step* told = nullptr;  //!< whose ranks and path are
  bool with_path = false;

  //! @param number  of that step; below 0: the last one
  //! @throws bad_input where there is no such step, or it has what the schedule has not
  told_trace(const traced_step& both_, std::int64_t number, bool with_path_)
      : both(both_), all(simulate(both.predicted)), with_path(with_path_) {
    const measured_trace& trace = both.trace;
    const std::vector<std::int64_t>& numbers = trace.steps();
    if (number < 0) number = trace.last();
    if (!std::ranges::binary_search(numbers, number))
      trace.fail("it has no step " + std::to_string(number) + ", but " +
                 std::to_string(numbers.size()) + " from " + std::to_string(numbers.front()) +
                 " to " + std::to_string(numbers.back()));
    const bool again = both.predicted.has(job_kind::recompute);
    for (const traced& one : trace.step(number))
      if (one.what.kind == job_kind::recompute && !again)
        trace.fail("has forwards that run again: --recompute says of which micro-batches");
    predicted_path = shares_of(critical_path(both.predicted.input(), all.timeline));
    for (const std::int64_t one : numbers) steps.push_back(measure(both, one));
    told = &*std::ranges::find(steps, number, &measured_step::number);
  }
  told_trace(const told_trace&) = delete;  // `told` points into it
  told_trace& operator=(const told_trace&) = delete;

  //! The first order that a step breaks; empty: none does.
  std::string broken() const {
    for (const measured_step& one : steps)
      if (!one.broken.empty()) return one.broken;
    return {};
  }
  job_rows rows() const { return both.predicted.input().rows; }
  std::string json() const;
  std::string text() const;
};

constexpr finer_unit nanoseconds{1000};  // of which so many are the unit that is told

std::string told_trace::json() const {
  const step& made = both.predicted;
  ordered_json text{{"schedule", made.schedule},
                    {"ranks", rows().ranks},
                    {"microbatches", made.microbatches},
                    {"chunks", made.chunks},
                    {"workers", both.trace.workers()},
                    {"worker", both.trace.worker()},
                    {"by", both.by},
                    {"predicted",
                     {{"makespan", made.time.json(all.all.makespan)},
                      {"bubble", all.all.bubble.value()},
                      {"jobs", made.time.json(predicted_path.jobs)},
                      {"messages", made.time.json(predicted_path.messages)}}}};
  for (const rank_report& rank : all.ranks) {
    text["predicted"]["busy"].push_back(made.time.json(rank.busy));
    text["predicted"]["idle"].push_back(made.time.json(rank.idle));
  }
  for (const measured_step& one : steps) {
    ordered_json its{{"step", one.number},
                     {"makespan", nanoseconds.json(one.makespan)},
                     {"bubble", one.bubble()}};
    if (one.broken.empty()) {
      its["jobs"] = nanoseconds.json(one.shares.jobs);
      its["messages"] = nanoseconds.json(one.shares.messages);
      its["lost"] = nanoseconds.json(one.shares.lost);
    } else {
      its["broken"] = one.broken;
    }
    for (std::size_t rank = 0; rank < one.busy.size(); ++rank) {
      its["busy"].push_back(nanoseconds.json(one.busy[rank]));
      its["idle"].push_back(nanoseconds.json(one.idle(rank)));
    }
    text["steps"].push_back(std::move(its));
  }
  text["step"] = told->number;
  if (told->broken.empty()) {
    for (const std::int64_t of : critical_by_rank(rows().ranks, told->path))
      text["critical"].push_back(nanoseconds.json(of));
    if (with_path) text["critical_path"] = critical_json(rows(), nanoseconds, told->path);
  }
  return text.dump(1) + "\n";
}

std::string told_trace::text() const {
  const step& made = both.predicted;
  std::vector<std::vector<std::string>> table{
      {"step", "makespan", "bubble", "critical path: jobs", "messages", "lost"}};
  const auto predicted = [&](std::int64_t time) {
    return percent(static_cast<double>(time) /
                   static_cast<double>(std::max<std::int64_t>(1, predicted_path.sum())));
  };
  table.push_back({"predicted", made.time.text(all.all.makespan), percent(all.all.bubble.value()),
                   predicted(predicted_path.jobs), predicted(predicted_path.messages),
                   predicted(predicted_path.lost)});
  for (const measured_step& one : steps) {
    table.push_back(
        {std::to_string(one.number), nanoseconds.text(one.makespan), percent(one.bubble())});
    for (const std::int64_t share : {one.shares.jobs, one.shares.messages, one.shares.lost})
      table.back().push_back(one.broken.empty() ? percent(one.part(share)) : "-");
  }
  std::string text = made.title + ", in microseconds\n";
  if (both.trace.workers() > 1)
    text += "of the " + std::to_string(both.trace.workers()) + " workers of each rank number " +
            std::to_string(both.trace.worker()) + "\n";
  text += "predicted by " + both.by + "\n\n" + print_table(table) + "\nstep " +
          std::to_string(told->number) + "\n";
  const std::vector<std::int64_t> critical = critical_by_rank(rows().ranks, told->path);
  table = {{"rank", "busy", "predicted", "idle", "predicted", "idle/makespan", "critical"}};
  for (std::size_t rank = 0; rank < all.ranks.size(); ++rank)
    table.push_back({std::to_string(rank), nanoseconds.text(told->busy[rank]),
                     made.time.text(all.ranks[rank].busy), nanoseconds.text(told->idle(rank)),
                     made.time.text(all.ranks[rank].idle), percent(told->part(told->idle(rank))),
                     told->broken.empty() ? nanoseconds.text(critical[rank]) : "-"});
  text += print_table(table);
  if (told->broken.empty() && with_path)
    text += "\n" + critical_text(rows(), nanoseconds, told->path);
  return text;
}

}  // namespace

void add_measured(CLI::App& app) {
  struct measured_command {
    step_options options;
    trace_options measured;
    std::string format = "table";
    std::int64_t number = -1;
    bool critical = false;
  };
  auto* command = app.add_subcommand(
      "measured", "What the steps of a trace took, beside the same one simulated");
  const auto mine = std::make_shared<measured_command>();
  mine->options.add(*command, true, true);
  add_traced(
      *command, mine->measured,
      "beside what its jobs would take by the costs given, which then are microseconds, or by "
      "default what they took there; its orders are held against the schedule's")
      ->required();
  command
      ->add_option("--step", mine->number,
                   "Whose ranks (and path) are told (default: the last one's)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1'000'000'000}).description(""));
  command->add_flag("--critical-path", mine->critical,
                    "With the chain of jobs and messages that this step was as long as");
  command->add_option("--format", mine->format, "table or json")
      ->check(CLI::IsMember({"table", "json"}));
  command->footer(
      "All times are microseconds. makespan: from the first job's start to the last one's end; "
      "busy:\n"
      "how long jobs of the rank run; idle: the rest; bubble: idle of the worst rank over the "
      "makespan.\n"
      "critical path: what of the makespan the jobs on it took, what messages, from a job's end to "
      "the\n"
      "start of one on another rank, and what was lost: before a job behind the end of the one in "
      "front\n"
      "of it on its rank, or behind the step's beginning. Of steps in which a job ran before what "
      "it\n"
      "needs there is none.\n" +
      exits);
  command->callback([mine, command] {
    const traced_step both = read_traced(*command, mine->options, mine->measured, true);
    const told_trace found(both, mine->number, mine->critical);
    std::cout << (mine->format == "json" ? found.json() : found.text());
    if (!found.broken().empty()) throw broken_schedule(mine->measured.file + ": " + found.broken());
  });
}

}  // namespace stretto::tool
