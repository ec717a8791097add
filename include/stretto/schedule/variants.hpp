#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "stretto/base/scratch.hpp"
#include "stretto/model/bound.hpp"
#include "stretto/schedule/concept.hpp"

namespace stretto::schedule {

//! What a search makes as short as it can.
enum class objective_kind : std::uint8_t {
  flush,  //!< from the first job of any rank to the last of any: steps are separated by a barrier
  span,   //!< the longest rank's first to last job: steps follow each other without one
};

//! How good one variant of a schedule is: the less the better, `first` before `room` before
//! `second`.
struct variant_score {
  bool fits = false;  //!< it serves the shape and keeps within the limits
  std::int64_t first = 0;   //!< what the search makes short
  std::int32_t room = 0;    //!< how much it may keep: see kept_room
  std::int64_t second = 0;  //!< the other of flush and span

  constexpr bool operator==(const variant_score&) const = default;
  //! Of two that fit.
  constexpr bool is_better_than(const variant_score& other) const {
    if (first != other.first) return first < other.first;
    return room != other.room ? room < other.room : second < other.second;
  }
};

//! The score of an order that fits.
//! @param room  how much it may keep: see kept_room
constexpr variant_score score_of(objective_kind objective, std::int64_t makespan,
                                 std::int64_t span, int room = 0) {
  const bool flush = objective == objective_kind::flush;
  return {true, flush ? makespan : span, room, flush ? span : makespan};
}

//! A schedule that tries several orders and emits the best: `variants` of them, numbered from 0,
//! and tried in this order until one is as good as any can be. `score(shape, table, variant, out)`
//! says how good one is, and writes its lists where there is `out`, a job_sink* (they mean nothing
//! unless it fits); the option `variant` asks for one alone, -1 for the best. stretto::pipeline
//! tries each in a constant of its own, because compilers count their limits per constant; at run
//! time `emit` does it all.
template <class Schedule>
concept Search = Policy<Schedule> &&
    requires(Schedule made, const shape& sizes, const job_table_view& table, job_sink* out) {
  typename std::integral_constant<int, static_cast<int>(Schedule::variants)>;
  { made.variant } -> std::convertible_to<int>;
  { made.objective } -> std::convertible_to<objective_kind>;
  { made.score(sizes, table, 0, out) } -> std::same_as<variant_score>;
};

//! Whether the option `variant` is one of a search's, or -1; else fault::unsupported.
template <class Schedule>
constexpr verdict variant_or_refuse(const Schedule& made) {
  // Not `made.variant <`: where std::variant is a name without std, that begins its arguments.
  if (made.variant >= -1 && Schedule::variants > made.variant) return {};
  return refuse(fault::unsupported, reason::variant_out_of_range);
}

//! How many orders a schedule still chooses from, each of which its `score` knows: a search's,
//! unless it is told which; 0 of others.
template <class Schedule>
constexpr int orders_of(const Schedule& made) {
  static_assert(
      Search<Schedule> || !requires { made.variants; },
      "stretto: a schedule with variants is a search, which has variants that are static "
      "and constexpr, members variant and objective, and score()");
  if constexpr (Search<Schedule>) return made.variant >= 0 ? 0 : Schedule::variants;
  if constexpr (requires { made.orders(); }) return made.orders();  // see any, merged
  return 0;
}
//! Whether it is but one variant of a search, and no other is asked for.
template <class Schedule>
constexpr bool is_one_variant(const Schedule& made) {
  if constexpr (Search<Schedule>) return made.variant >= 0;
  if constexpr (requires { made.one_variant(); }) return made.one_variant();  // see any
  return false;
}
//! What a schedule makes short: the makespan, unless it is told otherwise.
template <class Schedule>
constexpr objective_kind aim_of(const Schedule& made) {
  if constexpr (requires { made.aim(); })  // see any, merged
    return made.aim();
  else if constexpr (requires { { made.objective } -> std::convertible_to<objective_kind>; })
    return made.objective;
  else
    return objective_kind::flush;
}

//! What no variant can be better than: the lower bounds, in the smallest room. No search makes
//! pairs, so that nothing hides.
template <class Schedule>
constexpr variant_score best_possible(const Schedule& made, const shape& sizes,
                                      job_table_view table) {
  table.pair_hides = 0;
  const step_bound bound = lower_bound(place(made.placed(), sizes), table);
  return score_of(aim_of(made), bound.flush, bound.span);
}

//! The best of the variants offered: of equals the first. The one pick of both times.
struct variant_choice {
  int best = -1;  //!< -1: none fits
  variant_score least{};

  //! The better of this and another that is offered.
  constexpr variant_choice with(int variant, const variant_score& score) const {
    const bool better = score.fits && (best < 0 || score.is_better_than(least));
    return better ? variant_choice{variant, score} : *this;
  }
  //! Whether no other can be better.
  constexpr bool is_settled(const variant_score& possible) const {
    return best >= 0 && !possible.is_better_than(least);
  }
};

//! The best of all variants; -1 when none fits.
template <class Schedule>
constexpr int best_variant(const Schedule& made, const shape& sizes, const job_table_view& table) {
  const variant_score possible = best_possible(made, sizes, table);
  variant_choice choice;
  for (int variant = 0; variant < Schedule::variants && !choice.is_settled(possible); ++variant)
    choice = choice.with(variant, made.score(sizes, table, variant, nullptr));
  return choice.best;
}

//! The verdict on a single variant that does not fit. Its `amount` is the smallest limit under
//! which it does, given to all ranks whose own is lower: found by doubling, then halving. `rank`
//! has the lowest, `limit` is that.
template <class Schedule>
constexpr verdict variant_over_limit(const Schedule& made, const shape& sizes,
                                     const job_table_view& table, int variant) {
  scratch<std::int64_t> limits(sizes.ranks);
  job_table_view raised = table;
  raised.limit = {limits.data(), static_cast<std::size_t>(sizes.ranks)};
  const auto fits = [&](std::int64_t limit) {
    for (int rank = 0; rank < sizes.ranks; ++rank)
      limits[rank] = table.limit_of(rank) > limit ? table.limit_of(rank) : limit;
    return made.score(sizes, raised, variant, nullptr).fits;
  };
  verdict answer = refuse(fault::over_limit, reason::above_limit);
  answer.rank = 0;
  for (int rank = 1; rank < sizes.ranks; ++rank)
    if (table.limit_of(rank) < table.limit_of(answer.rank)) answer.rank = rank;
  answer.limit = table.limit_of(answer.rank);
  std::int64_t below = answer.limit;
  std::int64_t step = 1;
  while (step < unlimited / 4 && !fits(below + step)) {
    below += step;
    step *= 2;
  }
  answer.amount = below + step;
  while (answer.amount - below > 1) {
    const std::int64_t middle = below + (answer.amount - below) / 2;
    (fits(middle) ? answer.amount : below) = middle;
  }
  return answer;
}

}  // namespace stretto::schedule
