#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/late_weights.hpp"

namespace stretto::schedule {

//! ZB-H1 with few splits: rank r splits the backwards of the first r micro-batches, whose weights
//! come last, and those of the cool-down; in between they are whole, so that a gradient goes on
//! only after its weights: a little more bubble than ZB-H1 once communication costs something. The
//! quick start of sail-sg/zero-bubble-pipeline-parallelism.
struct zb_h1_light {
  static constexpr std::string_view name = "zb_h1_light";

  constexpr placement_kind placed() const { return placement_kind::looped; }
  constexpr verdict supports(const shape& sizes) const { return one_chunk_or_refuse(sizes); }
  constexpr int capacity(const shape& sizes) const { return 3 * sizes.microbatches; }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    const int count = sizes.microbatches;
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      const int warmup = sizes.ranks - rank;
      const int late = rank < count ? rank : count;
      push_late_weights(sizes, rank, warmup, late, out, late_kind::first,
                        [&](int k) { return k + warmup < count; });
    }
    return {};
  }
};

}  // namespace stretto::schedule
