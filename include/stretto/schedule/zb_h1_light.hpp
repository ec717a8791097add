#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"

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
      const auto push = [&](job_kind kind, int microbatch) {
        out.push(rank, {rank, microbatch, 0, kind});
      };
      const int warmup = sizes.ranks - rank;
      const int late = rank < count ? rank : count;
      // 1. Warm-up: min(p - r, m) forwards.
      for (int k = 0; k < warmup && k < count; ++k) push(job_kind::forward, k);
      for (int k = 0; k < count; ++k) {
        const bool steady = k + warmup < count;
        // 2. Steady: min(r, m) backwards for the input, then whole ones, and a forward each.
        if (k < late || !steady) push(job_kind::backward_input, k);
        if (k >= late) push(steady ? job_kind::backward : job_kind::backward_weight, k);
        if (steady) push(job_kind::forward, k + warmup);
        // 3. Cool-down: both halves, one after the other.
      }
      // 4. The weights put off.
      for (int k = 0; k < late; ++k) push(job_kind::backward_weight, k);
    }
    return {};
  }
};

}  // namespace stretto::schedule
