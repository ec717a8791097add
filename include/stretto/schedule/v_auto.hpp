#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/hanayo.hpp"
#include "stretto/schedule/parts/emit_best.hpp"
#include "stretto/schedule/parts/form_search.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_block_search.hpp"
#include "stretto/schedule/parts/wave_fill_drain.hpp"
#include "stretto/schedule/v_1f1b.hpp"
#include "stretto/schedule/v_half.hpp"
#include "stretto/schedule/v_min.hpp"
#include "stretto/schedule/variants.hpp"
#include "stretto/schedule/zbv_greedy.hpp"

namespace stretto::schedule {

//! The adaptive V: of the blocks of V schedules, of which V-Min's and V-Half's are two, those that
//! keep as much as every rank's limit of memory allows, made better for the costs at hand; where
//! memory is less than any of them needs, the flattest, begun less often (v_launch); and the
//! greedy V, which is good where memory is ample; and the closed forms on a V, some with whole
//! backwards. The best is taken. The idea is v_auto's of Qi et al. 2024, "Pipeline Parallelism with
//! Controllable Memory". Any m.
struct v_auto {
  static constexpr std::string_view name = "v_auto";
  objective_kind objective = objective_kind::flush;
  int variant = -1;  //!< a single one, 0 to variants - 1; -1: the best of all

  //! Blocks within the limits, the greedy V, once more blocks with one activation of a chunk less
  //! (what is found with a little less memory is then seldom lost), closed forms, both of blocks
  //! with each of the other ends, and the greedy V's fill-drain.
  static constexpr int blocks = v_block_search::variants;
  static constexpr int greedies = blocks + zbv_greedy::drains;
  static constexpr int passes = greedies + blocks;
  using forms = form_search<v_half, v_min, v_1f1b, hanayo>;
  static constexpr int ends = passes + forms::variants;
  static constexpr int closed = ends + 2 * v_block_search::cooled_variants;
  static constexpr int drains = closed + 2 * v_block_search::closed_variants;
  static constexpr int variants = drains + fill_drain_search::variants;

  constexpr placement_kind placed() const { return placement_kind::wave; }
  constexpr verdict supports(const shape& sizes) const {
    if (const verdict sound = variant_or_refuse(*this); !sound) return sound;
    return two_chunks_or_refuse(sizes);
  }
  constexpr int capacity(const shape& sizes) const { return v_streams * sizes.microbatches; }
  constexpr variant_score score(const shape& sizes, const job_table_view& table, int tried,
                                job_sink* out = nullptr) const {
    if (tried >= drains) return fill_drain_search{objective}.run(sizes, table, tried - drains, out);
    if (tried >= ends) {
      const bool closes = tried >= closed;
      const auto search = laid_blocks(closes ? v_end_kind::close_up : v_end_kind::cool_down);
      const int count = closes ? v_block_search::closed_variants : v_block_search::cooled_variants;
      const int of = tried - (closes ? closed : ends);
      return of < count ? search.run(sizes, table, of, out)
                        : search.run_less(sizes, table, of - count, out);
    }
    return tried < blocks     ? laid_blocks().run(sizes, table, tried, out)
           : tried < greedies ? greedy().score(sizes, table, tried - blocks, out)
           : tried < passes   ? laid_blocks().run_less(sizes, table, tried - greedies, out)
                              : forms{objective}.run(sizes, table, tried - passes, out);
  }
  //! @return fault::over_limit when a rank's limit is too small for even one micro-batch at a time:
  //!         `rank` is the one that needs most, `limit` its own, `amount` the smallest that is
  //!         enough for every rank with split backwards. Of a single variant: see
  //!         variant_over_limit.
  constexpr verdict emit(const shape& sizes, const job_table_view& table, job_sink& out) const {
    return emit_best(*this, sizes, table, out);
  }

 private:
  constexpr v_block_search laid_blocks(v_end_kind end = v_end_kind::block) const {
    return {objective, variant >= 0, end};
  }
  //! One of its variants alone, or, below 0, the search for the best.
  constexpr zbv_greedy greedy() const {
    return {.objective = objective, .variant = variant < 0 ? -1 : variant - blocks};
  }
};

}  // namespace stretto::schedule
