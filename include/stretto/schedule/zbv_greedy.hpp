#pragma once

#include <array>
#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/emit_best.hpp"
#include "stretto/schedule/parts/form_search.hpp"
#include "stretto/schedule/parts/round_search.hpp"
#include "stretto/schedule/parts/wave_fill_drain.hpp"
#include "stretto/schedule/parts/wave_rules.hpp"
#include "stretto/schedule/parts/wave_search.hpp"
#include "stretto/schedule/variants.hpp"
#include "stretto/schedule/zbv.hpp"

namespace stretto::schedule {

//! The greedy V: an order made for the costs at hand, per rank, chunk and kind, on a wave of any
//! number of chunks, within each rank's limit of memory. Greedy passes under different rules, the
//! best taken: in the order of time, safe at any limit; and in rounds, as ZB-V (Qi et al. 2023) and
//! Paddle's ZB-VPP make them. The idea is theirs: backwards for the weights fill the gaps.
struct zbv_greedy {
  static constexpr std::string_view name = "zbv_greedy";
  objective_kind objective = objective_kind::flush;
  int variant = -1;  //!< a single one, 0 to variants - 1; -1: the best of all

  //! Of passes in the order of time. Found by a search over rules: none of them alone, but all
  //! together, are at least as short as the orders of the systems named above on all of their
  //! published shapes, costs and limits. The first is the one that most often cannot be beaten, the
  //! fourth for limits of little memory.
  static constexpr std::array<wave_rules, 5> rules{{
      {.before_backward = fill_kind::slack, .patience = 2, .fixed = true},
      {.last_window = 0,
       .extra = 1,
       .before_forward = fill_kind::always,
       .before_backward = fill_kind::always,
       .first_wave = true,
       .spare_busiest = true},
      {.window = 9,
       .last_window = 15,
       .before_backward = fill_kind::fifth,
       .first_wave = true,
       .patience = 3,
       .patient_forward = true,
       .spare_busiest = true},
      {.window = 6,
       .before_forward = fill_kind::slack,
       .before_backward = fill_kind::slack,
       .alternate = false,
       .first_wave = true},
      {.before_forward = fill_kind::slack,
       .before_backward = fill_kind::always,
       .spare_busiest = true,
       .fixed = true},
  }};
  //! The rules in every room, and as the last resort micro-batches one by one; then the rounds,
  //! which find what their authors' generators do, the first ZB-VPP's, too, whatever the costs;
  //! then ZB-V's fixed order, and fill-drain.
  static constexpr int waves = wave_search::variants(rules.size());
  static constexpr int fixed = waves + round_search::variants;
  static constexpr int drains = fixed + form_search<zbv>::variants;
  static constexpr int variants = drains + fill_drain_search::variants;

  constexpr placement_kind placed() const { return placement_kind::wave; }
  constexpr verdict supports(const shape& sizes) const {
    if (const verdict sound = positive_or_refuse(sizes); !sound) return sound;
    if (sizes.slices > 1) return refuse(fault::unsupported, reason::slices_not_one);
    if (const verdict sound = variant_or_refuse(*this); !sound) return sound;
    if (variant >= 0 && !serves(sizes)) return refuse(fault::unsupported, reason::chunks_not_two);
    return {};
  }
  constexpr int capacity(const shape& sizes) const { return 3 * sizes.chunks * sizes.microbatches; }
  constexpr variant_score score(const shape& sizes, const job_table_view& table, int tried,
                                job_sink* out = nullptr) const {
    return tried < waves    ? search().run(sizes, table, tried, out)
           : tried < fixed  ? rounds().run(sizes, table, tried - waves, out)
           : tried < drains ? forms().run(sizes, table, tried - fixed, out)
                            : fill_drain_search{objective}.run(sizes, table, tried - drains, out);
  }
  //! @return fault::over_limit when a rank's limit is too small for even one micro-batch at a time:
  //!         `rank` is the one that needs most, `limit` its own, `amount` the smallest that is
  //!         enough for every rank. Of a single variant: see variant_over_limit.
  constexpr verdict emit(const shape& sizes, const job_table_view& table, job_sink& out) const {
    return emit_best(*this, sizes, table, out);
  }

 private:
  constexpr wave_search search() const { return {rules, objective, variant >= 0}; }
  constexpr round_search rounds() const { return {objective}; }
  constexpr form_search<zbv> forms() const { return {objective}; }
  //! Whether the single variant that is asked for does.
  constexpr bool serves(const shape& sizes) const {
    return variant < waves    ? search().serves(sizes, variant)
           : variant < fixed  ? rounds().serves(sizes, variant - waves)
           : variant < drains ? forms().serves(sizes, variant - fixed)
                              : true;
  }
};

}  // namespace stretto::schedule
