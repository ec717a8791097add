#include "traced_step.hpp"

#include <CLI/CLI.hpp>
#include <utility>

#include "errors.hpp"
#include "make_step.hpp"

namespace stretto::tool {

CLI::Option* add_traced(CLI::App& command, trace_options& given, const std::string& says) {
  return given
      .add(command, "File that the executor has written (the trainer's trace.json): " + says)
      ->excludes(command.get_option("--reduce-grad"))
      ->excludes(command.get_option("--unshard"))
      ->excludes(command.get_option("--gathered"));
}

traced_step read_traced(const CLI::App& command, step_options& options,
                        const trace_options& measured, bool finer) {
  const auto given = [&](const char* option) { return command.count(option) > 0; };
  const bool own_costs = given("--cost") || given("--costs") || given("--layers");
  for (const char* option : {"--nodes", "--serial-links"})
    if (given(option) && !own_costs)
      throw bad_input(std::string(option) +
                      ": --trace tells what jobs take, and of no hops; they go with --cost");
  options.costs.replicas = false;  // which traces tell of in another way
  step made = make_step(options, finer || !own_costs);
  const placement& where = made.made.where;
  measured_trace trace("--trace", measured.file, where.ranks, measured.worker, where.stages());
  if (!own_costs) {
    const int hides = made.made.costs.pair_hides;
    made.made.costs = trace.medians(where);
    made.made.costs.pair_hides = hides;
    made.time = finer ? finer_unit{1000} : finer_unit{};
    for (job_cost& one : made.made.costs.entries)
      if (!finer) one.time = (one.time + 500) / 1000;
  }
  return {std::move(made),
          own_costs ? "the costs given" : "what each kind of job took in the trace",
          std::move(trace)};
}

}  // namespace stretto::tool
