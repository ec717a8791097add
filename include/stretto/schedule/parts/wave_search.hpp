#pragma once

#include <cstddef>
#include <span>

#include "stretto/model/cost.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/parts/kept_room.hpp"
#include "stretto/schedule/parts/wave_limits.hpp"
#include "stretto/schedule/parts/wave_pass.hpp"
#include "stretto/schedule/parts/wave_rules.hpp"
#include "stretto/schedule/parts/wave_serial.hpp"
#include "stretto/schedule/variants.hpp"

namespace stretto::schedule {

//! The variants of a search over a wave: a greedy pass under each of the rules in each of the
//! rooms, and as the last resort, which fits where anything does, micro-batches one by one.
struct wave_search {
  std::span<const wave_rules> rules;
  objective_kind objective;
  bool alone;  //!< one variant is asked for, not the best

  static constexpr int variants(std::size_t rules) {
    return static_cast<int>(rules) * kept_room::count + 1;
  }
  constexpr bool is_last_resort(int tried) const { return tried + 1 == variants(rules.size()); }
  constexpr bool serves(const shape& sizes, int tried) const {
    return sizes.chunks == 2 || is_last_resort(tried) || !at(tried).fixed;
  }
  //! The last resort is not measured: anything else that fits is better.
  //! @param out  where the lists go; they mean nothing unless they fit. None: only measures
  constexpr variant_score run(const shape& sizes, const job_table_view& table, int tried,
                              job_sink* out) const {
    if (is_last_resort(tried)) {
      if (!wave_limits_or_refuse(sizes, table)) return {};
      if (out != nullptr) wave_one_by_one(sizes, table, *out);
      return {.fits = true, .first = unlimited};
    }
    if (!serves(sizes, tried)) return {};
    if (!alone && kept_room::repeats(sizes, table, room(tried))) return {};
    const kept_room within(sizes, table, room(tried));
    wave_pass pass(sizes, within.table(), at(tried), out);
    if (!pass.run()) return {};
    return score_of(objective, pass.makespan(), pass.span(), room(tried));
  }

 private:
  constexpr int room(int tried) const { return tried / static_cast<int>(rules.size()); }
  constexpr const wave_rules& at(int tried) const {
    return rules[static_cast<std::size_t>(tried) % rules.size()];
  }
};

}  // namespace stretto::schedule
