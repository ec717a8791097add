#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "arranged_step.hpp"
#include "command.hpp"
#include "critical.hpp"
#include "links.hpp"
#include "make_step.hpp"
#include "simulated.hpp"
#include "step_replicas.hpp"
#include "stretto/plan/receive_waits.hpp"
#include "table.hpp"

namespace stretto::tool {

void add_simulate(CLI::App& app) {
  struct simulate_command {
    step_options options;
    std::string format = "table";
    bool arrange = false;
    bool critical = false;
  };
  auto* command = app.add_subcommand("simulate", "Makespan, bubble and memory under given costs");
  const auto mine = std::make_shared<simulate_command>();
  mine->options.add(*command, true, true);
  command->add_flag("--arrange", mine->arrange,
                    "Micro-batches that --costs tells apart in the order that makes the step "
                    "shortest, as far as is found: the first of the step is the first number told");
  command->add_flag("--critical-path", mine->critical,
                    "With the chain of jobs and messages that the step is as long as");
  command->add_option("--format", mine->format, "table or json")
      ->check(CLI::IsMember({"table", "json"}));
  command->footer(
      "busy and idle: how long the rank computes and does not, of the makespan; bubble: idle of "
      "the\n"
      "worst rank over the makespan. With --objective span, and in json, also of the span: from a\n"
      "rank's first job to its last end, the longest.\n"
      "peak: the most memory in use, by --memory and --weights.\n"
      "A message is as late as costs say, however many are on their way, unless --serial-links; "
      "where\n"
      "those of one link would take longer than the step, one after the other, a line says so.\n"
      "receives wait: for how long receives are posted before their messages are made, summed; it\n"
      "is part of no other column, but what waits on a GPU may keep multiprocessors from "
      "kernels.\n"
      "With --reduce-grad each stage's gradients are summed over replicas as soon as all are "
      "there,\n"
      "beside the jobs; a rank's sums follow one another, and the makespan ends with the last.\n"
      "With --unshard a rank has the weights of the --gathered stages that it needs next. They "
      "are\n"
      "gathered beside the jobs, one stage's after another's, each when the job in front of it is\n"
      "done, whose weights made room; a job waits for its stage's. What of the makespan is by\n"
      "gathers would not be, were all weights there at once; peak has them while they are.\n"
      "With --critical-path: what of it each rank computes (critical), what it is made of, and a "
      "line\n"
      "for all that follow one another on a rank, or for a micro-batch's way through several; "
      "messages:\n"
      "how long they wait for those between them and for that before them, on serial links maybe\n"
      "several, one behind the other. What on the path takes longer makes the step longer by as "
      "much.\n"
      "Of several such paths one is told.\n" +
      exits);
  command->callback([mine] {
    step made = make_step(mine->options, true);
    refuse_nothing_gathered(mine->options, made);
    arrangement found;
    if (mine->arrange) found = arrange_step(mine->options, made);
    const finer_unit& time = made.time;
    const simulated all = simulate(made);
    const std::int64_t longer = by_gathers(made, all.all);
    const link_load link = busiest_link(made.input());
    const job_rows rows = made.input().rows;
    const auto gathers_of = [&](std::size_t rank) {
      return std::ranges::count(rows.row(static_cast<int>(rank)), job_kind::unshard, &job::kind);
    };
    // Lists with messages say themselves where receives stand.
    std::vector<std::int64_t> waits;
    if (!made.messages) waits = receive_waits(made.input(), all.timeline);
    std::vector<critical_job> path;
    std::vector<std::int64_t> critical;
    if (mine->critical) {
      path = critical_path(made.input(), all.timeline);
      critical = critical_by_rank(rows.ranks, path);
    }
    if (mine->format == "json") {
      nlohmann::ordered_json text{{"schedule", made.schedule},
                                  {"ranks", made.made.where.ranks},
                                  {"microbatches", made.microbatches},
                                  {"chunks", made.chunks},
                                  {"makespan", time.json(all.all.makespan)},
                                  {"span", time.json(all.all.span)},
                                  {"bubble", all.all.bubble.value()},
                                  {"span_bubble", all.all.span_bubble.value()},
                                  {"busiest_link", time.json(link.time)}};
      if (made.gathers) text["by_gathers"] = time.json(longer);
      if (made.sums) text["jobs_end"] = time.json(all.all.jobs_end);
      if (made.slices > 1) text["slices"] = made.slices;
      if (!made.layers.empty()) text["layers"] = made.layers;
      if (mine->arrange) {
        text["order"] = found.order;
        text["makespan_as_given"] = time.json(found.as_given);
      }
      for (const rank_report& rank : all.ranks) {
        text["busy"].push_back(time.json(rank.busy));
        text["idle"].push_back(time.json(rank.idle));
        text["peak"].push_back(rank.peak);
      }
      for (std::size_t rank = 0; rank < all.ranks.size() && made.gathers; ++rank)
        text["gathers"].push_back(gathers_of(rank));
      for (const std::int64_t wait : waits) text["receives_wait"].push_back(time.json(wait));
      for (const std::int64_t of : critical) text["critical"].push_back(time.json(of));
      if (mine->critical) text["critical_path"] = critical_json(rows, time, path);
      std::cout << text.dump(1) << '\n';
      return;
    }
    std::vector<std::vector<std::string>> table{{"rank", "busy", "idle", "idle/makespan", "peak"}};
    if (made.gathers) table.front().push_back("gathers");
    if (!waits.empty()) table.front().push_back("receives wait");
    if (mine->critical) table.front().push_back("critical");
    for (std::size_t rank = 0; rank < all.ranks.size(); ++rank) {
      const rank_report& of = all.ranks[rank];
      const fraction idle{of.idle, std::max<std::int64_t>(1, all.all.makespan)};
      table.push_back({std::to_string(rank), time.text(of.busy), time.text(of.idle),
                       percent(idle.value()), std::to_string(of.peak)});
      if (made.gathers) table.back().push_back(std::to_string(gathers_of(rank)));
      if (!waits.empty()) table.back().push_back(time.text(waits[rank]));
      if (mine->critical) table.back().push_back(time.text(critical[rank]));
    }
    std::cout << made.title << '\n';
    if (mine->arrange) {
      std::cout << "order   ";
      for (const std::int32_t one : found.order) std::cout << ' ' << one;
      std::cout << " (as given " << time.text(found.as_given) << ")\n";
    }
    if (!made.layers.empty()) {
      std::cout << "layers  ";
      for (const std::int32_t count : made.layers) std::cout << ' ' << count;
      std::cout << " (of each stage)\n";
    }
    std::cout << "makespan " << time.text(all.all.makespan);
    if (made.gathers) std::cout << ", gathers of weights " << time.text(longer) << " of it";
    if (made.sums)
      std::cout << ", sums of gradients " << time.text(all.all.makespan - all.all.jobs_end)
                << " of it behind the last job";
    std::cout << "\nbubble   " << percent(all.all.bubble.value()) << " ("
              << time.text(all.all.bubble.numerator) << " of " << time.text(all.all.makespan)
              << ")\n";
    if (mine->options.objective == "span")
      std::cout << "span     " << time.text(all.all.span) << ", of which "
                << percent(all.all.span_bubble.value()) << " idle ("
                << time.text(all.all.span_bubble.numerator) << ")\n";
    if (link.time > all.all.makespan)
      std::cout << "messages " << link.messages << " from rank " << link.from << " to " << link.to
                << ", one after the other " << time.text(link.time)
                << ": longer than the step, which lets a link carry any number at once (see "
                   "--serial-links)\n";
    std::cout << '\n' << print_table(table);
    if (mine->critical) std::cout << '\n' << critical_text(rows, time, path);
  });
}

}  // namespace stretto::tool
