#include "pipeline/order_file.hpp"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "pipeline/settings.hpp"
#include "stretto/plan/csv.hpp"
#include "stretto/plan/standing_still.hpp"
#include "stretto/schedule/concept.hpp"

namespace train {
namespace {

using stretto::imported_schedule;
using stretto::job;
using stretto::job_kind;
using stretto::verdict;

// Of a step with more jobs than the trainer takes on.
constexpr std::size_t most_bytes = 1 << 28;
constexpr int most_ranks = 64;  // each has threads

//! The lists of a file as a schedule.
struct imported_order {
  static constexpr std::string_view name = "imported";

  std::shared_ptr<const imported_schedule> held;
  stretto::placement_kind kind;

  stretto::shape made_for() const {
    return {.ranks = held->lists.rows().ranks,
            .microbatches = held->microbatches,
            .chunks = held->chunks,
            .slices = held->slices};
  }
  stretto::placement_kind placed() const { return kind; }
  verdict supports(const stretto::shape& sizes) const {
    if (const verdict sound = stretto::schedule::positive_or_refuse(sizes); !sound) return sound;
    return sizes == made_for() ? verdict{}
                               : stretto::refuse(stretto::fault::unsupported,
                                                 stretto::reason::shape_frozen);
  }
  int capacity(const stretto::shape&) const { return held->lists.rows().stride; }
  verdict emit(const stretto::shape&, const stretto::job_table_view&,
               stretto::job_sink& out) const {
    const stretto::job_rows rows = held->lists.rows();
    for (int rank = 0; rank < rows.ranks; ++rank)
      for (const stretto::job& work : rows.row(rank)) out.push(rank, work);
    return {};
  }
};

std::string read_text(const std::string& path) {
  const auto refuse = [&](const std::string& why) { throw bad_setting("csv", path, why); };
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) refuse("is a folder");
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse("cannot be read: " + std::string(std::strerror(errno)));
  std::string text;
  char some[1 << 16];
  while (file.read(some, sizeof some) || file.gcount() > 0) {
    text.append(some, static_cast<std::size_t>(file.gcount()));
    if (text.size() > most_bytes) refuse("is larger than 256 MiB");
  }
  if (file.bad()) refuse("cannot be read");
  return text;
}

}  // namespace

order_file read_order(const std::string& path) {
  const auto refuse = [&](const std::string& why) { throw bad_setting("csv", path, why); };
  const std::string file = read_text(path);
  const std::string_view text = stretto::without_mark(file);
  if (text.empty()) refuse("the file is empty");
  stretto::csv_result read = stretto::read_csv(text, stretto::csv_cells::all);
  if (!read.answer.ok()) refuse(read.answer.sentence());
  imported_order made{std::make_shared<const imported_schedule>(std::move(read.schedule)), {}};
  const imported_schedule& held = *made.held;
  if (held.format == stretto::csv_format::compute_comms)
    refuse("it has messages, which the trainer makes itself; stretto schedule --format csv writes "
           "one without");
  for (const auto& [kind, option] : {std::pair{job_kind::recompute, "recompute"},
                                     std::pair{job_kind::offload, "offload"}})
    if (any_job(held.lists.rows(), [&](const job& work) { return work.kind == kind; }))
      refuse("it says what forwards " +
             std::string(kind == job_kind::offload ? "copy" : "run again") +
             ", which the trainer has from --" + option);
  const stretto::job_table costs(held.where().ranks, held.where().chunks);
  const stretto::replay_input lists = held.input(costs.view());
  const stretto::csv_fault found =
      held.locate(stretto::check::schedule(lists, stretto::check::lists_of::training));
  if (!found.ok()) refuse(found.sentence() + stretto::standing_still(lists, found.what));
  if (held.where().ranks > most_ranks)
    refuse("has " + std::to_string(held.where().ranks) + " ranks, more than " +
           std::to_string(most_ranks));
  const auto kind = held.lies_as();
  if (!kind)
    refuse("its stages lie neither looped over the ranks (stage s on rank s % " +
           std::to_string(held.where().ranks) + ") nor in a wave, as the trainer's do");
  made.kind = *kind;
  return {made, made.made_for()};
}

}  // namespace train
