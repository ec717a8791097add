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
  std::vector<critical_job> path{};
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
  measured_step made{
      .number = number, .makespan = makespan_of(all), .busy = busy_of(all, both.trace.ranks())};
  // Where something ran before what it needs, nothing was as long as the step for that reason.
  if (both.broken.empty()) made.path = measured_path(all, both.predicted.input());
  made.shares = shares_of(made.path);
  return made;
}

}  // namespace

void add_measured(CLI::App& app) {
  struct measured_command {
    step_options options;
    std::string file;
    std::string format = "table";
    std::int64_t number = -1;
    bool critical = false;
  };
  auto* command = app.add_subcommand(
      "measured", "What the steps of a trace took, beside the same one simulated");
  const auto mine = std::make_shared<measured_command>();
  mine->options.add(*command, true, true);
  add_traced(
      *command, mine->file,
      "beside what its jobs would take by the costs given, which then are microseconds, or by "
      "default what they took there; its orders are held against the schedule's")
      ->required();
  command
      ->add_option("--step", mine->number,
                   "Whose ranks (and path) are told (default: the last one's)")
      ->check(CLI::NonNegativeNumber);
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
      "start of one on another rank, and what was lost between two jobs of one rank. Of steps in "
      "which\n"
      "a job ran before what it needs there is none.\n" +
      exits);
  command->callback([mine, command] {
    const traced_step both = read_traced(*command, mine->options, mine->file);
    const step& made = both.predicted;
    const job_rows rows = made.input().rows;
    const std::vector<std::int64_t>& numbers = both.trace.steps();
    const std::int64_t chosen = mine->number < 0 ? both.trace.last() : mine->number;
    if (!std::ranges::binary_search(numbers, chosen))
      both.trace.fail("it has no step " + std::to_string(chosen) + ", but " +
                      std::to_string(numbers.size()) + " from " + std::to_string(numbers.front()) +
                      " to " + std::to_string(numbers.back()));
    const simulated all = simulate(made);
    const path_shares simulated_path = shares_of(critical_path(made.input(), all.timeline));
    std::vector<measured_step> steps;
    for (const std::int64_t number : numbers) steps.push_back(measure(both, number));
    const measured_step& told = *std::ranges::find(steps, chosen, &measured_step::number);
    const std::vector<std::int64_t> critical = critical_by_rank(rows.ranks, told.path);
    const finer_unit time{1000};

    if (mine->format == "json") {
      ordered_json text{{"schedule", made.schedule},
                        {"ranks", rows.ranks},
                        {"microbatches", made.microbatches},
                        {"chunks", made.chunks},
                        {"by", both.by},
                        {"predicted",
                         {{"makespan", made.time.json(all.all.makespan)},
                          {"bubble", all.all.bubble.value()},
                          {"jobs", made.time.json(simulated_path.jobs)},
                          {"messages", made.time.json(simulated_path.messages)}}}};
      for (const rank_report& rank : all.ranks) {
        text["predicted"]["busy"].push_back(made.time.json(rank.busy));
        text["predicted"]["idle"].push_back(made.time.json(rank.idle));
      }
      for (const measured_step& one : steps) {
        ordered_json its{
            {"step", one.number}, {"makespan", time.json(one.makespan)}, {"bubble", one.bubble()}};
        if (both.broken.empty()) {
          its["jobs"] = time.json(one.shares.jobs);
          its["messages"] = time.json(one.shares.messages);
          its["lost"] = time.json(one.shares.lost);
        }
        for (std::size_t rank = 0; rank < one.busy.size(); ++rank) {
          its["busy"].push_back(time.json(one.busy[rank]));
          its["idle"].push_back(time.json(one.idle(rank)));
        }
        text["steps"].push_back(std::move(its));
      }
      text["step"] = chosen;
      if (!both.broken.empty())
        text["broken"] = both.broken;
      else
        for (const std::int64_t of : critical) text["critical"].push_back(time.json(of));
      if (!told.path.empty() && mine->critical)
        text["critical_path"] = critical_json(rows, time, told.path);
      std::cout << text.dump(1) << '\n';
    } else {
      std::vector<std::vector<std::string>> table{
          {"step", "makespan", "bubble", "critical path: jobs", "messages", "lost"}};
      const fraction of_jobs{simulated_path.jobs, std::max<std::int64_t>(1, simulated_path.sum())};
      table.push_back({"predicted", made.time.text(all.all.makespan),
                       percent(all.all.bubble.value()), percent(of_jobs.value()),
                       percent(1 - of_jobs.value()), percent(0)});
      for (const measured_step& one : steps) {
        table.push_back(
            {std::to_string(one.number), time.text(one.makespan), percent(one.bubble())});
        for (const std::int64_t share : {one.shares.jobs, one.shares.messages, one.shares.lost})
          table.back().push_back(both.broken.empty() ? percent(one.part(share)) : "-");
      }
      std::cout << made.title << ", in microseconds\npredicted by " << both.by << "\n\n"
                << print_table(table) << "\nstep " << chosen << '\n';
      table = {{"rank", "busy", "predicted", "idle", "predicted", "idle/makespan", "critical"}};
      for (std::size_t rank = 0; rank < all.ranks.size(); ++rank)
        table.push_back({std::to_string(rank), time.text(told.busy[rank]),
                         made.time.text(all.ranks[rank].busy), time.text(told.idle(rank)),
                         made.time.text(all.ranks[rank].idle), percent(told.part(told.idle(rank))),
                         both.broken.empty() ? time.text(critical[rank]) : "-"});
      std::cout << print_table(table);
      if (!told.path.empty() && mine->critical)
        std::cout << '\n' << critical_text(rows, time, told.path);
    }
    if (!both.broken.empty()) throw broken_schedule(mine->file + ": " + both.broken);
  });
}

}  // namespace stretto::tool
