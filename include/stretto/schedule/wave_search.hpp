#pragma once

#include <cstddef>
#include <span>

#include "stretto/model/cost.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/kept_room.hpp"
#include "stretto/schedule/variants.hpp"
#include "stretto/schedule/wave_pass.hpp"
#include "stretto/schedule/wave_rules.hpp"
#include "stretto/schedule/wave_serial.hpp"

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
  constexpr variant_score score(const shape& sizes, const job_table_view& table, int tried) const {
    if (!serves(sizes, tried)) return {};
    if (is_last_resort(tried))
      return {.fits = wave_limits_or_refuse(sizes, table).ok(), .first = unlimited};
    if (!alone && kept_room::repeats(sizes, table, room(tried))) return {};
    const kept_room within(sizes, table, room(tried));
    wave_pass pass(sizes, within.table(), at(tried));
    if (!pass.run()) return {};
    return score_of(objective, pass.makespan(), pass.span(), room(tried));
  }
  //! @return false when the variant does not fit; what it has emitted then means nothing
  constexpr bool emit(const shape& sizes, const job_table_view& table, int tried,
                      job_sink& out) const {
    if (!is_last_resort(tried)) {
      const kept_room within(sizes, table, room(tried));
      return wave_pass(sizes, within.table(), at(tried), &out).run();
    }
    if (!wave_limits_or_refuse(sizes, table)) return false;
    wave_one_by_one(sizes, table, out);
    return true;
  }

 private:
  constexpr int room(int tried) const { return tried / static_cast<int>(rules.size()); }
  constexpr const wave_rules& at(int tried) const {
    return rules[static_cast<std::size_t>(tried) % rules.size()];
  }
};

}  // namespace stretto::schedule
