#include "arranged_step.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "catalogue.hpp"
#include "errors.hpp"
#include "make_step.hpp"
#include "simulated.hpp"

namespace stretto::tool {

namespace {

// Jobs that are put in order and replayed, which take some 100 ns each.
constexpr std::int64_t most_jobs = 30'000'000;
constexpr std::int64_t most_tries = 512;

//! The step under other costs; none: it is not possible.
std::optional<step> made_anew(const step_options& options, const step& as_is,
                              const job_table& costs) {
  const shape sizes{as_is.made.where.ranks, as_is.microbatches, as_is.chunks, as_is.slices};
  schedule_options same = options.schedule();
  static_cast<memory::windows&>(same) = as_is.put;
  no_step why;
  std::optional<step> made = make_step(
      options.name, sizes, same, [&](const placement&) { return costs; }, &why);
  if (made) made->receive_lead = as_is.receive_lead;
  return made;
}

}  // namespace

arrangement arrange_step(const step_options& options, step& made) {
  const job_table given = made.made.costs;
  if (given.classes.empty())
    throw bad_input("--arrange: all micro-batches take the same; --costs tells what each takes");
  // The lists of a file stay as they are; a schedule makes its own anew.
  const bool read = made.imported.has_value();
  const auto makespan_of = [&](const job_table& costs) -> std::int64_t {
    if (!read) {
      const std::optional<step> other = made_anew(options, made, costs);
      return other ? simulate(*other, false).all.makespan : -1;
    }
    made.made.costs = costs;
    return check::bounded(made.input()).ok() ? simulate(made, false).all.makespan : -1;
  };
  const std::int64_t jobs = made.input().rows.total();
  const std::int64_t passes = read ? 1 : std::max(1, *orders_of(options.name));
  const std::int64_t tries =
      std::clamp<std::int64_t>(most_jobs / std::max<std::int64_t>(1, jobs * passes), 1, most_tries);
  arrangement found = arrange(given, made.microbatches, makespan_of, static_cast<int>(tries));
  job_table best = arranged(given, found.order);
  if (read) {
    made.made.costs = std::move(best);
  } else {
    std::optional<step> shortest = made_anew(options, made, best);
    shortest->title = std::move(made.title);
    shortest->time = made.time;
    made = std::move(*shortest);
  }
  return found;
}

}  // namespace stretto::tool
