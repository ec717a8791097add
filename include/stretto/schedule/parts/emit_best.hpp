#pragma once

#include "stretto/model/cost.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/model/verdict.hpp"
#include "stretto/schedule/parts/wave_limits.hpp"
#include "stretto/schedule/variants.hpp"

namespace stretto::schedule {

//! What a search emits that has, as the last resort, micro-batches one by one: the best of its
//! variants, or the one that it is told.
//! @return ok; else fault::over_limit, with no job in any list: see wave_limits_or_refuse, of a
//!         single variant variant_over_limit
template <class Schedule>
constexpr verdict emit_best(const Schedule& made, const shape& sizes, const job_table_view& costs,
                            job_sink& out) {
  const job_table_view table = costs.at_once();  // by which all variants time themselves
  const int chosen = made.variant >= 0 ? made.variant : best_variant(made, sizes, table);
  if (chosen >= 0 && made.score(sizes, table, chosen, &out).fits) return {};
  for (int rank = 0; rank < sizes.ranks; ++rank) out.counts[rank] = 0;
  return made.variant >= 0 ? variant_over_limit(made, sizes, table, made.variant)
                           : wave_limits_or_refuse(sizes, table);
}

}  // namespace stretto::schedule
