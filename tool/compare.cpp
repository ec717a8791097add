#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>

#include "command.hpp"
#include "compare_csv.hpp"
#include "compare_rows.hpp"
#include "compare_svg.hpp"
#include "errors.hpp"
#include "files.hpp"

namespace stretto::tool {

namespace {

struct compare_command : compare_options {
  std::string sort;
  std::string format = "table";
  std::string out = "-";

  void run() {
    compare_rows rows(*this);
    const comparison& common = rows.common();
    const std::vector<std::int64_t> limits = costs.several_limits();
    std::vector<comparison_run> runs;
    std::vector<compared> within_less;
    for (std::size_t at = 0; at < std::max<std::size_t>(1, limits.size()); ++at) {
      std::vector<compared> made =
          rows.made_within(limits.empty() ? std::nullopt : std::optional<std::int64_t>(limits[at]));
      for (std::size_t of = 0; of < within_less.size(); ++of)
        if (beats(within_less[of], made[of], common))
          made[of] = kept(within_less[of], limits[at - 1], limits[at] * common.memory.times);
      runs.push_back(sorted(made, common));
      within_less = std::move(made);
    }
    const auto gathers = [](const comparison_run& made) {
      return std::any_of(made.all.begin(), made.all.end(), std::mem_fn(&compared::gathers));
    };
    const bool empty = std::all_of(runs.begin(), runs.end(),
                                   [](const comparison_run& made) { return made.all.empty(); });
    if (!empty) costs.refuse_nothing_gathered(std::any_of(runs.begin(), runs.end(), gathers));
    if (format == "json")
      write_file("-o", out, common.json(limits, runs));
    else if (format == "csv")
      write_file("-o", out, to_csv(common, limits, runs));
    else if (format == "svg" && !empty)
      write_svg("-o", out, to_svg(common, limits, runs));
    else
      write_file("-o", format == "svg" ? "-" : out, common.table(limits, runs));
    if (empty)
      throw bad_input("no schedule serves this shape within its limits; " +
                      (format == "svg" || out == "-" ? "standard output" : out) + " says why");
  }

 private:
  bool before(const compared& one, const compared& other, const comparison& common) const {
    if (sort == "name") return one.name < other.name;
    if (sort == "peak" && one.peak() != other.peak()) return one.peak() < other.peak();
    const double bubbles[] = {common.bubble(one), common.bubble(other)};
    if (sort == "bubble" && bubbles[0] != bubbles[1]) return bubbles[0] < bubbles[1];
    if (sort == "makespan") return one.all.all.makespan < other.all.all.makespan;
    if (sort == "span") return one.all.all.span < other.all.all.span;
    return common.length(one) < common.length(other);
  }

  //! Whether what was made for less memory is shorter: layers that are dealt within a greater
  //! limit, and what searches find within it, can be worse.
  static bool beats(const compared& for_less, const compared& other, const comparison& common) {
    return for_less.why.found.ok() &&
           (!other.why.found.ok() || common.length(for_less) < common.length(other));
  }
  //! What was made for less, or for less than that, told of the limit at hand.
  //! @param less  that limit, as it was given; @param limit  in the costs' unit
  static compared kept(compared for_less, std::int64_t less, std::int64_t limit) {
    if (!for_less.made_for) for_less.made_for = less;
    std::ranges::fill(for_less.costs.limit, limit);
    for_less.find_bound();
    return for_less;
  }

  comparison_run sorted(const std::vector<compared>& made, const comparison& common) const {
    comparison_run run;
    for (const compared& one : made) (one.why.found.ok() ? run.all : run.absent).push_back(one);
    std::stable_sort(run.all.begin(), run.all.end(),
                     [&](const compared& one, const compared& other) {
                       if (one.forward_only != other.forward_only) return other.forward_only;
                       return before(one, other, common);
                     });
    return run;
  }
};

}  // namespace

void add_compare(CLI::App& app) {
  auto* command = app.add_subcommand(
      "compare", "Schedules on one model, the shortest first, beside what no order can beat");
  const auto mine = std::make_shared<compare_command>();
  const std::vector<CLI::Option*> others = mine->add(*command, several::cuts, true);
  auto* file = command
                   ->add_option("--csv", mine->csv,
                                "A schedule in PyTorch's CSV to stand beside them; may be given "
                                "several times")
                   ->allow_extra_args(false);
  for (CLI::Option* other : others) file->excludes(other);
  command
      ->add_option(
          "--sort", mine->sort,
          "makespan, span, bubble, peak or name (default makespan, or span, by --objective)")
      ->check(CLI::IsMember({"makespan", "span", "bubble", "peak", "name"}));
  command->add_option("--format", mine->format, "table, json, csv or svg")
      ->check(CLI::IsMember({"table", "json", "csv", "svg"}));
  command->add_option("-o,--output", mine->out, "File to write (default standard output)");
  command->footer(
      "Costs are those of a job of one of --chunks chunks. A schedule that has another number of\n"
      "chunks cuts the same model anew: column `job` says how many times that its jobs take, in\n"
      "time and memory; a hop between ranks and the limit stay. With --chunks 1 the costs are a\n"
      "whole rank's, and a schedule of two chunks has jobs of half of them.\n"
      "Of several --chunks a schedule stands there with each that it has, and costs are those of "
      "a\n"
      "job of the first.\n"
      "With --slices, costs are those of one slice, of one of the most where there are several.\n"
      "What can be sliced stands there in each number of them and whole, and jobs of fewer take\n"
      "what those of the slices that they do together would, and with --serial-links their "
      "messages, too.\n"
      "Forwards alone hold all of --weights, and of --layer-costs memory_weights_alone where that\n"
      "is given.\n"
      "bubble and peak are those of the worst rank, the bubble over the makespan, or with\n"
      "--objective span over the span. bound: no order on this placement and within\n"
      "this limit is shorter, its backwards whole or split. Forward-only schedules stand last,\n"
      "schedules that do not serve the shape or fit the limit below the table, with the reason; "
      "when\n"
      "there are no others, that is wrong input.\n"
      "With --reduce-grad the makespan ends with the last sum of gradients; sums behind: how long\n"
      "after the last job that is. The sum of a chunk is cut as its jobs are.\n"
      "With --unshard ranks have the weights of --gathered stages at once; by gathers: how much\n"
      "longer the step is for it. What a chunk's gather takes is cut as its jobs are.\n"
      "With --recompute and --offload what is put in is put into each schedule that trains, and "
      "the\n"
      "bound is that of such steps. auto puts into each what makes it shortest within --limit.\n"
      "With several limits the table says what is to be short within each. What keeps to a\n"
      "smaller one of them keeps to a greater: where that is shorter, it stands there, too.\n"
      "With --csv, an order of one's own stands beside them: its ranks and micro-batches are\n"
      "those asked for, and its chunks cut the model as a schedule's do.\n"
      "What --costs says of chunks by their number each takes an equal part of where a schedule "
      "has\n"
      "another number of them.\n"
      "--format svg draws the peak and the makespan (or span) of each schedule that trains, "
      "within\n"
      "every limit, and a line through those that none of the others beats in both.\n"
      "With --layers, costs are those of a layer, and each schedule gets the layers dealt to its\n"
      "own stages: --layers even:34 beside --layers balanced:34 shows what balancing gains.\n" +
      exits);
  command->callback([mine] { mine->run(); });
}

}  // namespace stretto::tool
