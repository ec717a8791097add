#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"

namespace stretto::schedule {

//! One forward, one backward: a rank warms up with as many forwards as ranks follow it, then
//! alternates, so that rank r keeps at most min(m, p - r) micro-batches alive. PipeDream-Flush
//! (Narayanan et al. 2021), there and in Megatron-LM, PyTorch and Paddle for m >= p; here for any
//! m.
struct one_f_one_b {
  static constexpr std::string_view name = "1f1b";

  constexpr placement_kind placed() const { return placement_kind::looped; }
  constexpr verdict supports(const shape& sizes) const { return one_chunk_or_refuse(sizes); }
  constexpr int capacity(const shape& sizes) const { return 2 * sizes.microbatches; }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    const int count = sizes.microbatches;
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      const auto push = [&](job_kind kind, int microbatch) {
        out.push(rank, {rank, microbatch, 0, kind});
      };
      const int followers = sizes.ranks - 1 - rank;
      const int warmup = followers < count ? followers : count;
      // 1. Warm-up: w = min(p - 1 - r, m) forwards.
      for (int k = 0; k < warmup; ++k) push(job_kind::forward, k);
      // 2. Steady: m - w times a forward and the backward of w micro-batches before.
      for (int k = 0; k < count - warmup; ++k) {
        push(job_kind::forward, warmup + k);
        push(job_kind::backward, k);
      }
      // 3. Cool-down: the w backwards that are left.
      for (int k = count - warmup; k < count; ++k) push(job_kind::backward, k);
    }
    return {};
  }
};

}  // namespace stretto::schedule
