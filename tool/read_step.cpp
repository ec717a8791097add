#include "read_step.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "dealing.hpp"
#include "errors.hpp"
#include "files.hpp"
#include "refusals.hpp"
#include "simulated.hpp"
#include "step_options.hpp"
#include "step_replicas.hpp"
#include "stretto/check/bounded.hpp"
#include "stretto/plan/csv_read.hpp"
#include "stretto/plan/gathered_weights.hpp"
#include "stretto/plan/standing_still.hpp"

namespace stretto::tool {

namespace {

//! A file's name as pictures and JSON can hold it: UTF-8, without control characters.
std::string printable(const std::string& name) {
  using nlohmann::json;
  const std::string text = json(name).dump(-1, ' ', false, json::error_handler_t::replace);
  return shown(json::parse(text).get<std::string>());
}

}  // namespace

step read_order(const std::string& option, const std::string& path) {
  const std::string file = read_file(option, path);
  const std::string_view text = without_mark(file);
  step made;
  made.schedule = printable(path);
  if (text.empty()) throw broken_schedule(made.schedule + ": the file is empty");
  csv_result read = read_csv(text, csv_cells::all);
  if (!read.answer.ok()) throw broken_schedule(made.schedule + ": " + read.answer.sentence());
  made.imported = std::move(read.schedule);
  made.made.where = made.imported->where();
  made.microbatches = made.imported->microbatches;
  made.chunks = made.imported->chunks;
  made.slices = made.imported->slices;
  made.messages = made.imported->format == csv_format::compute_comms;
  made.forward_only = !any_job(made.imported->lists.rows(),
                               [](const job& work) { return is_input_gradient(work.kind); });
  made.title = printable(std::filesystem::path(path).filename().string()) + ": " +
               count_of(made.made.where.ranks, "rank") + ", " +
               count_of(made.microbatches, "micro-batch");
  if (made.chunks > 1) made.title += ", " + count_of(made.chunks, "chunk");
  if (made.slices > 1) made.title += ", " + count_of(made.slices, "slice");
  return made;
}

void refuse_own_messages(const step& read, const std::string& csv) {
  if (read.messages)
    throw bad_option("--csv", csv,
                     "is compute_comms, and a plan makes messages of its own: give the jobs alone");
}

namespace {

//! What is found in the lists with what replicas do, told of those that were read.
verdict as_read(const step& made, verdict found) {
  if (!made.with_replicas || found.rank < 0 || found.step < 0) return found;
  const std::span<const job> with = made.with_replicas->rows().row(found.rank);
  const std::span<const job> read = made.imported->lists.rows().row(found.rank);
  std::size_t at = 0;
  for (const job& work : with.first(static_cast<std::size_t>(found.step)))
    if (at < read.size() && read[at] == work) ++at;
  found.step = static_cast<int>(std::min(at, read.size() - 1));
  return found;
}

void prove_by(step& read, job_table costs, no_step* why, std::optional<int> gathered) {
  read.made.costs = std::move(costs);
  csv_fault found = verify(*read.imported, read.made.costs.view(),
                           gathered.value_or(std::numeric_limits<int>::max()));
  if (found.ok() || found.what.what == fault::over_limit) {
    verdict with = add_replicas(read, gathered.value_or(default_gathered));
    if (why == nullptr) refuse_too_few(read, with);
    if (with.ok()) with = check::bounded(read.input());
    if (with.ok()) return;
    found = read.imported->locate(as_read(read, with));
  }
  const replay_input order = read.input();
  const bool above = found.what.what == fault::over_limit;
  if (why != nullptr && (above || found.what.why == reason::too_many_gathered)) {
    *why = {above ? fullest(order, found.what) : found.what};
    return;
  }
  // It is the costs', or what is asked of them.
  if (found.what.what == fault::unsupported)
    throw bad_input(read.schedule + ": " + found.sentence());
  throw broken_schedule(read.schedule + ": " + found.sentence() +
                        (above ? "; the order " + needs_in_words(fullest(order, found.what))
                               : standing_still(order, found.what)));
}

}  // namespace

void prove_order(step& read, const cost_options& given, const cost_cut& cut, no_step* why,
                 schedule::objective_kind objective) {
  const cost_options costs = given.for_step(read.forward_only, read.has(job_kind::offload));
  const auto prove = [&](const cost_options& way, no_step* told) {
    prove_by(read, make_costs(way, read.made.where, cut, &read.layers), told, costs.gathered);
  };
  if (!costs.deals()) return prove(costs, why);
  best_way best(costs);
  const auto attempt = [&](const cost_options& way) {
    no_step told;
    prove(way, &told);
    if (told.found.ok())
      best.fits(way, length_of(read, objective));
    else
      best.refused(way, told.found);
  };
  attempt(without_limit(costs));
  if (costs.limit) {
    const bool free = best.any();
    attempt(costs);
    if (!free) try_as_kept_by(read.input(), costs, best, attempt);
  }
  if (read.made.where.chunks > 1) attempt(evenly(costs));
  prove(best.way(), why);
}

}  // namespace stretto::tool
