// Every schedule under any shape, options, costs and limits: what it emits keeps all rules, fits
// the limit and can be measured; what it refuses is refused with a reason.
#include "support/schedules.hpp"

#include <cstdlib>

#include "fuzz/support/fuzz.hpp"
#include "stretto/check/all.hpp"
#include "stretto/model/costs_fit.hpp"
#include "stretto/model/verdict_text.hpp"
#include "stretto/plan/emit_jobs.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/merged.hpp"

namespace {

using fuzz::choices;
using fuzz::require;
using stretto::job_table;
using stretto::shape;

constexpr std::int64_t most = stretto::job_table_view::most_time;

stretto::job_cost any_cost(choices& by, bool large) {
  const std::int64_t top = large ? most : 12;
  return {std::abs(by.number() % (top + 1)), by.number() % (top + 1),
          by.flip() ? 0 : std::abs(by.number() % (top + 1))};
}

//! Mostly a table of one machine, of which some entries differ.
job_table any_table(choices& by, const stretto::placement& where, const shape& sizes) {
  stretto::unit_costs units;
  units.forward = by.below(8), units.backward_input = by.below(8),
  units.backward_weight = by.below(8);
  units.communication = by.below(4), units.whole_saves = 0;
  units.memory_forward = by.below(6), units.memory_backward_input = -by.below(3);
  units.memory_backward_weight = -by.below(6), units.memory_recompute = by.below(6);
  units.pair_hides = by.below(101), units.memory_weights = by.below(3);
  job_table made(where.ranks, where.chunks, units);
  const bool large = by.flip();
  if (by.flip()) {
    made.classes.resize(static_cast<std::size_t>(sizes.microbatches * sizes.slices));
    made.slices = sizes.slices;
    const int classes = 1 + made.add_class();
    for (std::int32_t& one : made.classes) one = by.below(static_cast<std::size_t>(classes));
  }
  for (int times = by.below(12); times > 0; --times) by.one_of(made.entries) = any_cost(by, large);
  if (by.flip()) {
    const std::int64_t limit = large ? by.number() : by.below(64);
    made.limit.assign(static_cast<std::size_t>(where.ranks), limit);
    by.one_of(made.limit) /= 2;
  }
  if (by.flip()) {
    made.node_ranks = by.below(4);
    made.between_nodes = large ? std::abs(by.number() % (most + 1)) : by.below(20);
    made.serial_links = by.flip();
  }
  return made;
}

stretto::memory::windows any_windows(choices& by) {
  stretto::memory::windows put;
  const stretto::memory::microbatch_window window{by.from(0, 3), by.from(-1, 3), by.from(0, 1),
                                                  by.from(0, 3)};
  if (by.flip()) put.recompute = window;
  if (by.flip()) put.offload = {window, by.from(-1, 3), by.from(-1, 3)};
  return put;
}

//! @param searches  within the limit
template <class Schedule>
void emit(const Schedule& schedule, const shape& sizes, const stretto::memory::windows& put,
          const job_table& costs, bool searches) {
  stretto::job_lists lists;
  const stretto::verdict answer = emit_jobs(schedule, sizes, put, costs.view(), lists);
  const std::string words(to_text(answer).view());
  require(!words.empty(), "a sentence");
  if (!answer.ok()) {
    require(answer.what == stretto::fault::unsupported || answer.what == stretto::fault::over_limit,
            "a schedule refuses costs or a limit: " + words);
    return;
  }
  const stretto::replay_input input{.rows = lists.rows(),
                                    .where = stretto::place(schedule.placed(), sizes),
                                    .microbatches = sizes.microbatches,
                                    .slices = sizes.slices,
                                    .costs = costs.view()};
  if (searches && !put.any() && costs.classes.empty())
    require(stretto::check::bounded(input).what != stretto::fault::over_limit,
            "a search keeps to the limit");
  job_table unlimited = costs;
  unlimited.limit.clear();
  stretto::replay_input within = input;
  within.costs = unlimited.view();
  const stretto::verdict sound = stretto::check::schedule(within);
  require(sound.ok() || sound.why == stretto::reason::below_base,  // as the costs have it
          "what is emitted keeps the rules: " + std::string(to_text(sound).view()));
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(sizes.ranks));
  const stretto::report all = stretto::measure(input, ranks);
  require(all.answer.ok() && all.makespan >= 0, "what is emitted is measured");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  choices by(data, size);
  const auto& schedules = support::schedules();
  const auto& schedule = schedules[static_cast<std::size_t>(by.below(schedules.size()))];
  const shape sizes{.ranks = by.from(0, 6),
                    .microbatches = by.from(0, 10),
                    .chunks = by.from(0, 3),
                    .slices = by.from(0, 3)};
  if (!schedule.supports(sizes)) return 0;
  const stretto::placement where = stretto::place(schedule.placed(), sizes);
  const job_table costs = any_table(by, where, sizes);
  if (!stretto::costs_fit(costs.view(), where, sizes.microbatches, sizes.slices).ok()) return 0;
  const stretto::memory::windows put = any_windows(by);
  using stretto::schedule::merge_kind;
  const auto merge = static_cast<merge_kind>(by.below(3));
  const bool searches = schedule.orders() > 0;
  if (merge == merge_kind::none) return emit(schedule, sizes, put, costs, searches), 0;
  const stretto::schedule::merged<stretto::schedule::any> whole(
      schedule, merge,
      by.flip() ? stretto::schedule::objective_kind::flush
                : stretto::schedule::objective_kind::span);
  emit(whole, sizes, put, costs, searches && merge == merge_kind::shortest);
  return 0;
}
