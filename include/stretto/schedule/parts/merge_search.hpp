#pragma once

#include <cstdint>

#include "stretto/model/cost.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/schedule/parts/half_merge.hpp"
#include "stretto/schedule/variants.hpp"

namespace stretto::schedule {

//! Which halves of lists are joined, of the few ways that are tried: those of the shortest step,
//! and of as short ones those of the most whole backwards. Or all that stand side by side. Writes
//! the lists, and says what they then score.
struct merge_search {
  objective_kind objective;

  //! Whatever it costs.
  constexpr variant_score run_adjacent(half_merge& halves, job_sink& out) const {
    return scored(halves.run({.exchange = false, .keeps_limits = false}, &out));
  }
  constexpr variant_score run_shortest(half_merge& halves, const job_table_view& table,
                                       job_sink& out) const {
    const auto tried = [&](const half_merge::rules& by) {
      const half_merge::result made = halves.run(by, nullptr);
      return choice{by, scored(made), made};
    };
    // No path need be longer than the step is now, nor, once a shorter one is known, than that.
    choice best = tried({.length = halves.makespan()});
    const auto consider = [&](const half_merge::rules& by) {
      if (const choice other = tried(by); other.is_better_than(best)) best = other;
    };
    if (objective == objective_kind::span) consider({.length = half_merge::no_length});
    if (saves(table)) {
      consider({.exchange = false});
      consider({});
      consider({.length = best.made.makespan - 1});
    }
    return scored(halves.run(best.by, &out));
  }

 private:
  //! As short as any comes first, then as whole as any.
  struct choice {
    half_merge::rules by{};
    variant_score score{};
    half_merge::result made{};

    constexpr bool is_better_than(const choice& other) const {
      if (score.fits != other.score.fits) return score.fits;
      if (score.first != other.score.first) return score.first < other.score.first;
      return made.joined != other.made.joined ? made.joined > other.made.joined
                                              : score.second < other.score.second;
    }
  };

  constexpr variant_score scored(const half_merge::result& made) const {
    return made.fits ? score_of(objective, made.makespan, made.span) : variant_score{};
  }
  //! Whether a whole backward of any rank takes less than its halves.
  static constexpr bool saves(const job_table_view& table) {
    const auto count = static_cast<std::int64_t>(table.entries.size());
    for (std::int64_t chunk = 0; chunk < count; chunk += cost_kinds) {
      const auto time = [&](job_kind kind) {
        return table.entries.data()[chunk + static_cast<int>(kind)].time;
      };
      if (time(job_kind::backward) <
          time(job_kind::backward_input) + time(job_kind::backward_weight))
        return true;
    }
    return false;
  }
};

}  // namespace stretto::schedule
