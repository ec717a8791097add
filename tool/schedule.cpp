#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "errors.hpp"
#include "files.hpp"
#include "frozen_header.hpp"
#include "grid.hpp"
#include "make_step.hpp"
#include "simulated.hpp"
#include "step_messages.hpp"
#include "step_replicas.hpp"
#include "stretto/model/job_text.hpp"
#include "stretto/plan/csv.hpp"
#include "stretto/plan/gathered_weights.hpp"
#include "stretto/plan/picture.hpp"

namespace stretto::tool {

namespace {

struct schedule_command {
  step_options options;
  std::string format = "grid";
  bool comms = false;
  std::string out = "-";

  void run(const CLI::App& command) const {
    if (options.receive_lead && !comms)
      throw bad_input("--receive-lead: only messages have one; see --comms");
    // A header holds the costs, as they are given.
    step made = make_step(options, format != "header");
    if (!(comms && format == "csv")) refuse_nothing_gathered(options, made);
    // Limits were kept with gathered weights; none but PyTorch's form tells where they are.
    const std::string left_out = made.gathers ? "gathers of weights" : "";
    leave_out_replicas(made);
    if (comms && made.messages)
      throw bad_input("--comms: " + made.schedule + " holds messages already");
    job_lists lowered;
    if (comms && format == "csv") {
      const int gathered = options.costs.gathered.value_or(default_gathered);
      if (gathered < least_gathered(made.input().rows))
        refuse_few_gathered(gathered, made.schedule);
      lowered = with_pytorch_comms(made, gathered);
    } else if (comms) {
      lowered = with_messages(made);
    }
    const job_rows rows = comms ? lowered.rows() : made.input().rows;
    if (format == "header") {
      if (comms) throw bad_input("--comms: a header holds compute jobs alone");
      write_file("-o", out, print_header(made, line_of(command)));
    } else if (format == "csv" || format == "cells")
      write_file("-o", out, csv(made, rows));
    else if (format == "json")
      print_json(made, rows);
    else
      write_file("-o", out, grid(made, rows, left_out));
  }

 private:
  //! The command line that asks for the same, but for where it goes.
  static std::string line_of(const CLI::App& command) {
    std::string line = "stretto schedule";
    for (const CLI::Option* option : command.get_options()) {
      if (option->count() == 0 || option->check_name("-o")) continue;
      if (!option->get_positional()) line += " --" + option->get_lnames().back();
      if (option->get_items_expected_max() == 0) continue;  // a flag
      for (const std::string& word : option->results()) line += " " + shell_word(word);
    }
    return line;
  }
  std::string csv(const step& made, const job_rows& rows) const {
    std::string text;
    const verdict answer = write_csv(rows, made.made.where, text,
                                     format == "csv" ? csv_cells::pytorch : csv_cells::all);
    if (answer.ok()) return text;
    const std::string others = "; --format cells writes it for stretto alone";
    if (answer.why == reason::placement_not_served)
      throw bad_input("--format csv: a bidirectional placement has no form in PyTorch's CSV" +
                      others);
    throw bad_input("--format " + format + ": " + std::string(to_text(answer.where).view()) +
                    " of rank " + std::to_string(answer.rank) + ": " +
                    std::string(describe(answer.why)) + (format == "csv" ? others : ""));
  }

  std::string grid(const step& made, const job_rows& rows, const std::string& left_out) const {
    const bool terminal = out == "-" && isatty(STDOUT_FILENO) == 1;
    const char* wide = std::getenv("COLUMNS");
    const int columns = terminal && wide != nullptr ? std::atoi(wide) : 200;
    const simulated all = simulate(made);
    std::string text = made.title + "; " + summary(all.all, made.time.times) +
                       (left_out.empty() ? "" : ", without " + left_out) + "\n";
    const bool timed = !comms && !made.messages;
    return text +
           print_grid(rows,
                      timed ? std::span<const job_time>(all.timeline) : std::span<const job_time>{},
                      made.time, columns, terminal && std::getenv("NO_COLOR") == nullptr);
  }

  //! As nlohmann's dump(1) writes it; job by job, for all of them may not fit the memory.
  void print_json(const step& made, const job_rows& rows) const {
    const simulated all = simulate(made);
    nlohmann::ordered_json head;
    head["schedule"] = made.schedule;
    head["ranks"] = rows.ranks;
    head["microbatches"] = made.microbatches;
    if (made.slices > 1) head["slices"] = made.slices;
    head["stages"] = made.made.where.stages();
    head["makespan"] = made.time.json(all.all.makespan);
    write_file("-o", out, [&](std::ostream& to) {
      const std::string first = head.dump(1);
      to << first.substr(0, first.size() - 2) << ",\n \"lists\": [";  // but its "\n}"
      for (int rank = 0; rank < rows.ranks; ++rank) {
        to << (rank == 0 ? "" : ",") << "\n  {\n   \"rank\": " << rank << ",\n   \"jobs\": [";
        for (int step = 0; step < rows.counts[rank]; ++step) {
          const auto at = static_cast<std::size_t>(rank) * static_cast<std::size_t>(rows.stride) +
                          static_cast<std::size_t>(step);
          to << (step == 0 ? "" : ",");
          print_job(to, rows.at(rank, step), made.time, comms ? nullptr : &all.timeline[at]);
        }
        to << (rows.counts[rank] == 0 ? "" : "\n   ") << "]\n  }";
      }
      to << "\n ]\n}\n";
    });
  }
  static void print_job(std::ostream& to, const job& work, const finer_unit& time,
                        const job_time* when) {
    nlohmann::ordered_json one{{"job", to_text(work).view()},
                               {"stage", work.stage},
                               {"kind", letters(work.kind)},
                               {"microbatch", work.microbatch}};
    if (work.slice != 0) one["slice"] = work.slice;
    if (work.paired) one["paired"] = true;
    if (when != nullptr) {
      one["start"] = time.json(when->start);
      one["end"] = time.json(when->end);
    }
    to << "\n    {";
    for (const char* comma = ""; const auto& [name, value] : one.items()) {
      to << comma << "\n     \"" << name << "\": " << value;
      comma = ",";
    }
    to << "\n    }";
  }
};

}  // namespace

void add_schedule(CLI::App& app) {
  auto* command = app.add_subcommand("schedule", "Print a schedule");
  const auto mine = std::make_shared<schedule_command>();
  mine->options.add(*command, false, true);
  command
      ->add_option("--format,--emit", mine->format,
                   "grid, csv (PyTorch's), cells (such rows with what PyTorch has no form for, for "
                   "stretto alone), json, or header: C++, the order as a constant table")
      ->check(CLI::IsMember({"grid", "csv", "cells", "json", "header"}));
  command->add_flag("--comms", mine->comms,
                    "With sends and receives; csv: as PyTorch runs it, weights gathered and "
                    "gradients reduced, too");
  command->add_option("-o,--output", mine->out, "File to write (default standard output)");
  command->callback([mine, command] { mine->run(*command); });
}

}  // namespace stretto::tool
