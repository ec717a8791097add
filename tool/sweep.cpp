#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "compare_csv.hpp"
#include "compare_options.hpp"
#include "compare_rows.hpp"
#include "errors.hpp"
#include "files.hpp"
#include "sweep_grid.hpp"
#include "sweep_svg.hpp"

namespace stretto::tool {

namespace {

struct sweep_command : compare_options {
  std::string measure = sweep_measures().front().name;
  std::string format = "table";
  std::string out = "-";

  void run() const {
    sweep_grid grid(*std::ranges::find(sweep_measures(), measure, &sweep_measure::name),
                    sizes.all_ranks, sizes.all_microbatches);
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    std::string lines = csv_titles();
    bool any = false;
    bool gathers = false;
    const auto on = [&](std::size_t shape) {
      compare_options one = *this;
      one.sizes.ranks = grid.ranks_of(shape);
      one.sizes.microbatches = grid.microbatches_of(shape);
      return one;
    };
    // A shape that is refused is so before others have taken their time.
    for (std::size_t shape = 0; shape < grid.shapes(); ++shape) compare_rows{on(shape)};
    for (std::size_t shape = 0; shape < grid.shapes(); ++shape) {
      compare_rows compared(on(shape));
      comparison_run made;
      for (auto& row : compared.made_within(std::nullopt))
        (row.why.found.ok() ? made.all : made.absent).push_back(std::move(row));
      any = any || !made.all.empty();
      gathers = gathers || std::ranges::any_of(made.all, &compared::gathers);
      grid.add(shape, compared.common(), made);
      if (format == "json")
        for (auto& row : compared.common().rows_of(made)) rows.push_back(std::move(row));
      if (format == "csv") lines += csv_lines(compared.common(), costs.limit, made);
    }
    if (any) costs.refuse_nothing_gathered(gathers);
    if (format == "json")
      write_file("-o", out, rows.dump(1) + "\n");
    else if (format == "csv")
      write_file("-o", out, lines);
    else if (format == "svg" && any)
      write_svg("-o", out, to_svg(grid));
    else
      write_file("-o", format == "svg" ? "-" : out, grid.table());
    if (!any)
      throw bad_input("no schedule serves any of these shapes within its limits; " +
                      (format == "svg" || out == "-" ? "standard output" : out) + " says why");
  }
};

}  // namespace

void add_sweep(CLI::App& app) {
  auto* command = app.add_subcommand(
      "sweep", "Schedules on several numbers of ranks and micro-batches, as numbers or a picture");
  const auto mine = std::make_shared<sweep_command>();
  mine->add(*command, several::shapes, false);
  std::vector<std::string> measures;
  for (const sweep_measure& one : sweep_measures()) measures.emplace_back(one.name);
  command
      ->add_option(
          "--measure", mine->measure,
          "What a table or a picture shows: bubble (of the makespan), span_bubble, makespan, span, "
          "pace (the makespan per micro-batch), peak or above (how far above the bound)")
      ->check(CLI::IsMember(measures))
      ->capture_default_str();
  command
      ->add_option("--format", mine->format,
                   "table, csv or json, which have all that compare tells, or svg")
      ->check(CLI::IsMember({"table", "json", "csv", "svg"}));
  command->add_option("-o,--output", mine->out, "File to write (default standard output)");
  command->footer(
      "What stands there of a shape is what compare says of it. --cost and the like are those of "
      "a\n"
      "job on every shape, so that more ranks are a larger model, and more micro-batches more of\n"
      "them; --layers deals one model's layers to any number of ranks. --limit is each rank's.\n"
      "Of several numbers of ranks and of micro-batches each number of ranks has a table of its "
      "own,\nthe best on its last column first; rows of csv and json stand as `list` has them.\n"
      "A picture has the 30 lines that are best where they end, and no forwards alone.\n" +
      exits);
  command->callback([mine] { mine->run(); });
}

}  // namespace stretto::tool
