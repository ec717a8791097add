#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "catalogue.hpp"
#include "command.hpp"
#include "errors.hpp"
#include "memory_table.hpp"
#include "read_step.hpp"
#include "recomputation.hpp"
#include "refusals.hpp"
#include "step_options.hpp"
#include "stretto/check/all.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/gathered_weights.hpp"
#include "stretto/plan/report.hpp"
#include "transformer_ranks.hpp"

namespace stretto::tool {

namespace {

constexpr double mib = 1 << 20;
constexpr double most_mib = 1e12;

struct memory_command {
  std::string name;
  std::string csv;
  shape_options sizes;
  std::string layers_text = "24";
  transformer_options of_model;
  recomputation recompute;
  std::optional<int> recompute_count;
  std::optional<int> recompute_period;
  std::string offload = "none";
  std::optional<int> gathered;
  std::optional<double> limit;
  std::string format = "table";

  void add(CLI::App& command) {
    command.add_option("NAME", name, "Schedule: " + schedule_names());
    sizes.add(command, false);
    command
        .add_option("--layers", layers_text,
                    "Transformer layers, and how they are dealt to stages, as `assign` has it: 24, "
                    "7,6,6,5, balanced:24, a layout")
        ->capture_default_str();
    of_model.add(command);
    of_model.add_state(command);
    of_model.add_dense(command);
    of_model.add_head(command,
                      "Cuts the head's vocabulary in so many pieces, each a layer of its own: "
                      "the last of --layers (default 1: the head is with the last)");
    recompute.add(command, "");
    command
        .add_option("--recompute-of", recompute_period,
                    "Of every so many micro-batches recompute --recompute-count")
        ->check(CLI::Range(1, std::numeric_limits<int>::max()).description(""));
    command
        .add_option("--recompute-count", recompute_count, "See --recompute-of (without both: all)")
        ->check(CLI::Range(1, std::numeric_limits<int>::max()).description(""));
    add_offload(command, offload);
    auto* file = command.add_option(
        "--csv", csv,
        "An order in a file (of `schedule --format csv` or cells) instead of a schedule's name, "
        "which "
        "here is for jobs that all take as long: costs may make another of it; --recompute tells "
        "what the file's recomputes do again");
    for (const char* other : {"NAME", "--ranks", "--microbatches", "--chunks", "--slices",
                              "--recompute-of", "--recompute-count", "--offload"})
      file->excludes(command.get_option(other));
    add_gathered(command, gathered);
    command.add_option(
        "--limit", limit,
        "MiB that no rank's state, gathered weights and jobs may exceed; messages and "
        "copies of gradients come on top");
    command.add_option("--format", format, "table or json")
        ->check(CLI::IsMember({"table", "json"}));
  }

  void run() {
    const assignment::described how(layers_text);
    if (!how.complaint().empty()) throw bad_option("--layers", layers_text, how.complaint());
    std::optional<step> read;
    if (!csv.empty()) {
      read = read_jobs();
      name = read->schedule;
    }
    const shape wanted = read ? shape{read->made.where.ranks, read->microbatches, read->chunks,
                                      read->slices}
                              : sizes.named(name);
    refuse_unplanned(wanted, csv);
    const bool forward_only = read ? read->forward_only : is_forward_only(name);
    if (forward_only && of_model.data_parallel.value_or(1) > 1)
      throw bad_option("--data-parallel", std::to_string(*of_model.data_parallel),
                       name + " has no gradients to sum");
    of_model.settle(how.layers(), layers_text, wanted.slices);
    if (forward_only && model_.optimizer_shards > 1)
      throw bad_option("--optimizer-shards", std::to_string(model_.optimizer_shards),
                       name + " has no optimizer");
    // Not by a range, which has nothing against NaN.
    if (limit && !(*limit > 0 && *limit <= most_mib))
      throw bad_option("--limit", (std::ostringstream() << *limit).str(),
                       "must be above 0 and at most 1e12");
    recompute.settle(model_, wanted.slices);
    schedule_options options;
    if (!read) {
      options.recompute = window();
      options.offload = read_offload(offload, name);
    }
    const bool copies = read ? read->has(job_kind::offload) : options.offload.any();
    if (gathered && !gathers())
      throw bad_option("--gathered", std::to_string(*gathered),
                       "has a meaning only with --weight-shards");
    options.gathered = gathered.value_or(options.gathered);
    if (forward_only && recompute.any())
      throw bad_option("--recompute", recompute.text(),
                       name + " has no backward for which a forward would run again");
    const transformer_ranks model{of_model, layers_text, how, recompute, forward_only};
    verdict unsound;
    const auto costs = [&](const placement& where, bool split) {
      job_table table = model.job_costs(where, unsound, split, copies);
      if (limit)
        table.limit.assign(static_cast<std::size_t>(where.ranks),
                           static_cast<std::int64_t>(*limit * mib));
      return table;
    };
    generated made;
    if (read) {
      made.where = read->made.where;
      made.costs = costs(made.where, true);
      made.lists = read->imported->lists;
    } else {
      made = generate(name, wanted, options,
                      // Schedules that look at limits split their backwards.
                      [&](const placement& where) { return costs(where, true); });
    }
    if (unsound.why == reason::too_many_ops)
      throw bad_option("--layers", layers_text,
                       "a stage of rank " + std::to_string(unsound.rank) +
                           " gets too many: " + std::string(describe(unsound.why)));
    if (!unsound.ok()) throw bad_input(std::string(to_text(unsound).view()));
    if (made.refused) refuse_shape(name, made.answer.why, wanted, options);
    const amount_text mibs = [this](std::int64_t bytes) {
      if (limit && bytes == static_cast<std::int64_t>(*limit * mib))
        return (std::ostringstream() << *limit).str() + " MiB";  // as it was given
      return static_cast<double>(bytes) < mib ? std::to_string(bytes) + " bytes"
                                              : in_mib(bytes) + " MiB";
    };
    if (!made.answer.ok())
      throw broken_schedule(
          name + ": " +
          refusal_of_search(made.answer,
                            copies || made.room ? least_limit::enough : least_limit::smallest,
                            mibs));
    bool split = false;
    for (int rank = 0; rank < wanted.ranks; ++rank)
      for (const job& work : made.lists.rows().row(rank))
        split = split || work.kind == job_kind::backward_weight;
    const job_table table = split ? made.costs : costs(made.where, false);
    const replay_input input{
        made.lists.rows(), made.where, wanted.microbatches, wanted.slices, table.view(), false, {}};
    if (read) prove(*read, table);
    if (gathers() && options.gathered < least_gathered(input.rows))
      refuse_few_gathered(options.gathered, name);
    const job_lists lists =
        gathers() ? with_gathered_weights(input, options.gathered) : job_lists{};
    replay_input step = input;
    if (gathers()) step.rows = lists.rows();
    if (const verdict answer = check::schedule(step); !answer.ok())
      throw broken_schedule(name + ": " + refusal_of_order(answer, step, mibs));
    std::vector<rank_report> ranks(static_cast<std::size_t>(wanted.ranks));
    (void)measure(step, ranks);
    const placement& where = made.where;
    memory_table found{name,
                       wanted,
                       forward_only,
                       gathers(),
                       model.copies_sums(where),
                       copies,
                       model_.head_pieces > 1,
                       needs(step, table, ranks, model.dealt(where))};
    const std::vector<rank_memory> steps =
        measure_plans(input, model.message(), model.chains(where), model.summed(where));
    for (std::size_t rank = 0; rank < steps.size(); ++rank) found.ranks[rank].step = steps[rank];
    std::cout << (format == "json" ? found.json() : found.text());
  }

 private:
  //! The jobs of the file, which are not proven yet.
  step read_jobs() const {
    step read = read_order("--csv", csv);
    const placement& where = read.made.where;
    refuse_own_messages(read, csv);
    if (where.stages() != where.ranks * where.chunks_one_way())
      throw bad_option("--csv", csv, "its ranks have not all as many stages");
    if (read.has(job_kind::recompute) && !recompute.apart())
      throw bad_option("--csv", csv,
                       "has recomputes: --recompute says of what, and not of layers or inside");
    if (!read.has(job_kind::recompute) && recompute.apart())
      throw bad_option("--recompute", recompute.text(), csv + " has no recomputes");
    return read;
  }
  //! Against all rules but the limit's.
  static void prove(const step& read, job_table table) {
    table.limit.clear();
    if (const csv_fault found = verify(*read.imported, table.view()); !found.ok())
      throw broken_schedule(read.schedule + ": " + found.sentence());
  }
  memory::recompute_window window() const {
    if (!recompute.apart()) {
      const std::string why = !recompute.any()        ? "has a meaning only with --recompute"
                              : recompute.by_layers()
                                  ? "does not go with --recompute " + recompute.text()
                                  : "does not go with --recompute-inside";
      if (recompute_period)
        throw bad_option("--recompute-of", std::to_string(*recompute_period), why);
      if (recompute_count)
        throw bad_option("--recompute-count", std::to_string(*recompute_count), why);
      return {};
    }
    if (recompute_period && !recompute_count)
      throw bad_option("--recompute-of", std::to_string(*recompute_period),
                       "has a meaning only with --recompute-count");
    if (recompute_count && !recompute_period)
      throw bad_option("--recompute-count", std::to_string(*recompute_count),
                       "has a meaning only with --recompute-of");
    const int period = recompute_period.value_or(1);
    const int count = recompute_count.value_or(1);
    if (count > period)
      throw bad_option("--recompute-count", std::to_string(count),
                       "is more than --recompute-of, " + std::to_string(period));
    return {period, count};
  }
  bool gathers() const { return model_.weight_shards > 1; }
  //! The most at once of weights that a rank gathers.
  static std::int64_t most_gathered(const replay_input& step, int rank) {
    std::int64_t held = 0;
    std::int64_t most = 0;
    for (const job& work : step.rows.row(rank)) {
      if (!is_gather(work.kind)) continue;
      const int chunk = step.where.chunk_on(rank, work.stage);
      const std::int64_t bytes = step.costs.at(rank, chunk, job_kind::unshard).change;
      held += work.kind == job_kind::unshard ? bytes : -bytes;
      most = std::max(most, held);
    }
    return most;
  }

  //! What plans of the step need is left out.
  //! @param step  with its gathers
  static std::vector<rank_need> needs(const replay_input& step, const job_table& table,
                                      const std::vector<rank_report>& ranks,
                                      const std::vector<transformer_part>& parts) {
    std::vector<rank_need> all;
    for (int rank = 0; rank < step.where.ranks; ++rank) {
      rank_need need;
      for (int chunk = 0; chunk < step.where.chunks; ++chunk)
        need.add(parts[static_cast<std::size_t>(step.where.stage_of(rank, chunk))]);
      need.state = table.base[static_cast<std::size_t>(rank)];
      need.gathered = most_gathered(step, rank);
      need.jobs = ranks[static_cast<std::size_t>(rank)].peak;
      all.push_back(need);
    }
    return all;
  }

  const transformer& model_ = of_model.model;
};

}  // namespace

void add_memory(CLI::App& app) {
  auto* command =
      app.add_subcommand("memory", "What each rank needs for a transformer, before it runs");
  const auto mine = std::make_shared<memory_command>();
  mine->add(*command);
  command->callback([mine] { mine->run(); });
}

}  // namespace stretto::tool
