#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "stretto/base/scratch.hpp"
#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/emit_best.hpp"
#include "stretto/schedule/parts/kept_room.hpp"
#include "stretto/schedule/parts/list_score.hpp"
#include "stretto/schedule/parts/wave_rules.hpp"
#include "stretto/schedule/parts/wave_search.hpp"
#include "stretto/schedule/parts/zb_forms.hpp"
#include "stretto/schedule/parts/zb_pass.hpp"
#include "stretto/schedule/variants.hpp"

namespace stretto::schedule {

//! Automatic zero bubble: an order made for the costs at hand, within each rank's limit of memory.
//! Greedy passes under different rules, the best taken. ZB-1p and ZB-2p (Qi et al. 2023) are limits
//! of p and 2 p activations; what the authors' passes lack is good orders below p, which those over
//! a wave (of one chunk) have. The closed forms of zb_forms take part, so that none of them that
//! fits is shorter; kFkB, of which there are as many as micro-batches, does not.
struct zb_auto {
  static constexpr std::string_view name = "zb_auto";
  objective_kind objective = objective_kind::flush;
  int variant = -1;  //!< a single one, 0 to variants - 1; -1: the best of all

  //! Found by a search over rules: with them, all but 3 of 170 small steps of known optimum are
  //! optimal.
  static constexpr std::array<wave_rules, 2> rules{{
      {.last_window = 0,
       .before_backward = fill_kind::fifth,
       .patience = 3,
       .patient_forward = true,
       .spare_busiest = true},
      {.last_window = 9,
       .extra = 1,
       .before_backward = fill_kind::always,
       .alternate = false,
       .first_wave = true,
       .patience = 2},
  }};
  static constexpr int passes = 8;  //!< the authors'
  //! These in every room, then the closed forms, which all fit the smallest, then the rules',
  //! then the closed forms that pay where whole backwards take less.
  static constexpr int forms = passes * kept_room::count;
  static constexpr int waves = forms + static_cast<int>(std::size(zb_forms));
  static constexpr int light = waves + wave_search::variants(rules.size());
  static constexpr int variants = light + static_cast<int>(std::size(zb_light_forms));

  constexpr placement_kind placed() const { return placement_kind::looped; }
  constexpr verdict supports(const shape& sizes) const {
    if (const verdict sound = one_chunk_or_refuse(sizes); !sound) return sound;
    return variant_or_refuse(*this);
  }
  constexpr int capacity(const shape& sizes) const { return 3 * sizes.microbatches; }
  constexpr variant_score score(const shape& sizes, const job_table_view& table, int tried,
                                job_sink* out = nullptr) const {
    return tried < forms   ? run(sizes, table, tried, out)
           : tried < waves ? run_form(sizes, table, zb_forms[tried - forms], out)
           : tried < light ? search().run(sizes, table, tried - waves, out)
                           : run_form(sizes, table, zb_light_forms[tried - light], out);
  }
  //! @return fault::over_limit when a rank's limit is too small for even one micro-batch at a time:
  //!         `rank` is the one that needs most, `limit` its own, `amount` the smallest that is
  //!         enough for every rank. Of a single variant: see variant_over_limit.
  constexpr verdict emit(const shape& sizes, const job_table_view& table, job_sink& out) const {
    return emit_best(*this, sizes, table, out);
  }

 private:
  constexpr wave_search search() const { return {rules, objective, variant >= 0}; }
  constexpr variant_score run_form(const shape& sizes, const job_table_view& table,
                                   const zb_form& form, job_sink* out) const {
    if (out != nullptr) {
      if (!write_zb_form(sizes, table, form, *out)) return {};
      return score_lists(objective, sizes, place(placed(), sizes), table, out->rows());
    }
    scratch_lists lists(sizes.ranks, capacity(sizes));
    return run_form(sizes, table, form, &lists.sink);
  }
  //! One of the authors' passes; without `out` it only measures.
  constexpr variant_score run(const shape& sizes, const job_table_view& table, int tried,
                              job_sink* out) const {
    const int room = tried / passes;
    if (variant < 0 && kept_room::repeats(sizes, table, room)) return {};
    const kept_room within(sizes, table, room);
    scratch<zb_rank> ranks(sizes.ranks);
    scratch<std::int64_t> there(std::int64_t{2} * sizes.ranks * sizes.microbatches);
    const int choices = passes - 1 - tried % passes;  // all of them made first, as the authors do
    zb_pass pass(sizes, within.table(), choices, ranks, there, out);
    if (!pass.run()) return {};
    return score_of(objective, pass.makespan(), pass.span(), room);
  }
};

}  // namespace stretto::schedule
