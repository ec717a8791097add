#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/variants.hpp"
#include "stretto/schedule/wave_pass.hpp"
#include "stretto/schedule/wave_serial.hpp"

namespace stretto::schedule {

//! The greedy V: an order made for the costs at hand, per rank, chunk and kind, on a wave of any
//! number of chunks, within each rank's limit of memory. Greedy passes under different rules, the
//! best taken. The idea is that of ZB-V (Qi et al. 2023) and Paddle's ZB-VPP (v = 2, m = p):
//! backwards for the weights fill the gaps; here in the order of time, and safe at any limit.
struct zbv_greedy {
  static constexpr std::string_view name = "zbv_greedy";
  objective_kind objective = objective_kind::flush;
  int variant = -1;  //!< a single one, 0 to variants - 1; -1: the best of all

  //! Found by a search over rules: none of them alone, but all together, are at least as short as
  //! the orders of the systems named above on all of their published shapes, costs and limits.
  static constexpr std::array<wave_rules, 4> rules{{
      {.last_window = 0,
       .extra = 1,
       .before_forward = fill_kind::always,
       .before_backward = fill_kind::always,
       .first_wave = true,
       .spare_busiest = true},
      {.before_backward = fill_kind::slack, .patience = 2, .fixed = true},
      {.before_forward = fill_kind::slack,
       .before_backward = fill_kind::always,
       .spare_busiest = true,
       .fixed = true},
      {.window = 9,
       .last_window = 15,
       .before_backward = fill_kind::fifth,
       .first_wave = true,
       .patience = 3,
       .patient_forward = true,
       .spare_busiest = true},
  }};
  //! The rules, and as the last resort micro-batches one by one.
  static constexpr int variants = static_cast<int>(rules.size()) + 1;

  constexpr placement_kind placed() const { return placement_kind::wave; }
  constexpr verdict supports(const shape& sizes) const {
    if (const verdict sound = positive_or_refuse(sizes); !sound) return sound;
    if (sizes.slices > 1) return refuse(fault::unsupported, reason::slices_not_one);
    if (variant < -1 || variant >= variants)
      return refuse(fault::unsupported, reason::variant_out_of_range);
    if (variant >= 0 && !serves(variant, sizes))
      return refuse(fault::unsupported, reason::chunks_not_two);
    return {};
  }
  constexpr int capacity(const shape& sizes) const { return 3 * sizes.chunks * sizes.microbatches; }

  //! How good a variant is. The last resort is not measured: anything else that fits is better.
  constexpr variant_score score(const shape& sizes, const job_table_view& table, int tried) const {
    if (is_serial(tried))
      return {.fits = wave_limits_or_refuse(sizes, table).ok(), .first = unlimited};
    if (!serves(tried, sizes)) return {};
    wave_pass pass(sizes, table, rules_of(tried));
    if (!pass.run()) return {};
    return score_of(objective, pass.makespan(), pass.span());
  }
  //! Where the rules of a single variant find no way within the limits it is the last resort's.
  //! @return fault::over_limit when a rank's limit is too small for even one micro-batch at a time:
  //!         `rank` is the one that needs most, `limit` its own, `amount` the smallest that is
  //!         enough for every rank
  constexpr verdict emit(const shape& sizes, const job_table_view& table, job_sink& out) const {
    if (const verdict found = wave_limits_or_refuse(sizes, table); !found) return found;
    const int chosen = variant < 0 ? best_variant(*this, sizes, table) : variant;
    if (!is_serial(chosen) && wave_pass(sizes, table, rules_of(chosen), &out).run()) return {};
    for (int rank = 0; rank < sizes.ranks; ++rank) out.counts[rank] = 0;
    wave_one_by_one(sizes, out);
    return {};
  }

 private:
  static constexpr bool is_serial(int tried) { return tried + 1 == variants; }
  static constexpr bool serves(int tried, const shape& sizes) {
    return is_serial(tried) || !rules_of(tried).fixed || sizes.chunks == 2;
  }
  static constexpr const wave_rules& rules_of(int tried) {
    return rules[static_cast<std::size_t>(tried)];
  }
};

}  // namespace stretto::schedule
