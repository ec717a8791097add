#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"

namespace stretto::schedule {

//! 1F1B with twice the forwards ahead: rank r keeps at most min(m, 2 (p - r) - 1) micro-batches
//! alive, so that a message has a round's time on its way before anyone waits for it. Paddle's
//! Eager1F1B, which wants m >= 2 p - 1; here any m.
struct eager_1f1b {
  static constexpr std::string_view name = "eager_1f1b";

  constexpr placement_kind placed() const { return placement_kind::looped; }
  constexpr verdict supports(const shape& sizes) const { return one_chunk_or_refuse(sizes); }
  constexpr int capacity(const shape& sizes) const { return 2 * sizes.microbatches; }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    const int count = sizes.microbatches;
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      const auto push = [&](job_kind kind, int microbatch) {
        out.push(rank, {rank, microbatch, 0, kind});
      };
      const int ahead = 2 * (sizes.ranks - rank) - 1;
      const int warmup = ahead < count ? ahead : count;
      // 1. Warm-up: w = min(2 (p - r) - 1, m) forwards.
      for (int k = 0; k < warmup; ++k) push(job_kind::forward, k);
      // 2. Steady: m - w times a backward and the forward of w micro-batches on.
      for (int k = 0; k < count - warmup; ++k) {
        push(job_kind::backward, k);
        push(job_kind::forward, warmup + k);
      }
      // 3. Cool-down: the w backwards that are left.
      for (int k = count - warmup; k < count; ++k) push(job_kind::backward, k);
    }
    return {};
  }
};

}  // namespace stretto::schedule
