#include "step_windows.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include "errors.hpp"

namespace stretto::tool {

namespace {

//! @param kind    of the jobs that take away, or bring back, some of what a forward keeps: no more
//!                than that, and nothing below 0
//! @param option  that says how much, with its value as typed
//! @param words   (where, amount, kept): what to say of the first that does not
template <class Words>
void refuse_beyond_kept(const step& made, job_kind kind, const char* option,
                        const std::string& value, const amount_text& text, const Words& words) {
  const job_table_view table = made.made.costs.view();
  for (std::int64_t number = 0; number < table.class_count(); ++number)
    for (int rank = 0; rank < table.ranks; ++rank)
      for (int chunk = 0; chunk < table.chunks; ++chunk) {
        const job_table_view of = table.of_class(number);
        const std::int64_t change = of.at(rank, chunk, kind).change;
        const std::int64_t amount = kind == job_kind::offload ? -change : change;
        const std::int64_t kept = of.at(rank, chunk, job_kind::forward).change;
        if (amount >= 0 && amount <= std::max<std::int64_t>(0, kept)) continue;
        throw bad_option(option, value,
                         words("rank " + std::to_string(rank) + ", chunk " + std::to_string(chunk),
                               text(amount), text(kept)));
      }
}

//! What --copy says must be of something, and no copy moves more than there is.
void refuse_copies(const cost_options& costs, const window_options& windows, const step& made,
                   const amount_text& text) {
  if (!made.has(job_kind::offload)) {
    // Where no backward is far enough behind its forward, no copy is made of all that might be.
    if (costs.copy.empty() || windows.of(made.schedule).offload.any()) return;
    throw bad_option("--copy", costs.copy,
                     made.imported ? "no job of " + made.schedule + " copies"
                                   : "has a meaning only with --offload");
  }
  const bool told = costs.copies_told();
  refuse_beyond_kept(
      made, job_kind::offload, told ? "--copy" : "--costs", told ? costs.copy : costs.costs_file,
      text, [](const std::string& where, const std::string& moved, const std::string& kept) {
        return "a copy of " + where + " moves " + moved + ", and its forward keeps " + kept;
      });
}

//! Nor does a second run bring back more than there is, and --again must be of something.
void refuse_second_runs(const cost_options& costs, const window_options& windows, const step& made,
                        const amount_text& text) {
  if (!made.has(job_kind::recompute)) {
    // Where every backward stands right behind its forward, none runs again of all that might.
    if (costs.again.empty() || windows.of(made.schedule).recompute.any()) return;
    throw bad_option("--again", costs.again,
                     made.imported ? "no forward of " + made.schedule + " runs again"
                                   : "has a meaning only with --recompute");
  }
  const bool of_layers = !costs.layers.file.empty();
  const bool told = costs.second().memory.has_value() || (costs.costs_file.empty() && !of_layers);
  refuse_beyond_kept(
      made, job_kind::recompute,
      told        ? "--again"
      : of_layers ? "--layer-costs"
                  : "--costs",
      told        ? costs.again
      : of_layers ? costs.layers.file
                  : costs.costs_file,
      text, [](const std::string& where, const std::string& back, const std::string& kept) {
        return "a forward of " + where + " brings back " + back +
               " when it runs again, and it keeps " + kept;
      });
}

}  // namespace

void refuse_windows(const cost_options& costs, const window_options& windows, const step& made,
                    const amount_text& text) {
  refuse_copies(costs, windows, made, text);
  refuse_second_runs(costs, windows, made, text);
}

}  // namespace stretto::tool
