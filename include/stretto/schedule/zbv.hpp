#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"

namespace stretto::schedule {

//! ZB-V in its fixed form: two chunks per rank laid as a V, so that rank 0 holds the first stage
//! and the last and gradients come back to it at once. With f = b = w a rank is never idle between
//! its first and its last job, with 1F1B's memory: at most 2 p chunks' activations. Qi et al. 2023;
//! PyTorch's ScheduleZBVZeroBubble. Any m; with m < 2 p - 1 the order is that of 2 p - 1 micro-
//! batches without those that do not exist.
struct zbv {
  static constexpr std::string_view name = "zbv";

  constexpr placement_kind placed() const { return placement_kind::wave; }
  constexpr verdict supports(const shape& sizes) const {
    if (const verdict sound = positive_or_refuse(sizes); !sound) return sound;
    if (sizes.chunks != 2) return refuse(fault::unsupported, reason::chunks_not_two);
    if (sizes.slices > 1) return refuse(fault::unsupported, reason::slices_not_one);
    return {};
  }
  constexpr int capacity(const shape& sizes) const { return 6 * sizes.microbatches; }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    const int p = sizes.ranks;
    const int count = sizes.microbatches;
    const int full = 2 * p - 1 > count ? 2 * p - 1 : count;
    for (int rank = 0; rank < p; ++rank) {
      const int stages[2] = {rank, 2 * p - 1 - rank};
      int next[2][4] = {};  // of each chunk and kind
      const auto push = [&](int chunk, job_kind kind) {
        const int microbatch = next[chunk][static_cast<int>(kind)]++;
        if (microbatch < count) out.push(rank, {stages[chunk], microbatch, 0, kind});
      };
      const auto forward = [&](int chunk) { push(chunk, job_kind::forward); };
      const auto input = [&](int chunk) { push(chunk, job_kind::backward_input); };
      const auto weight = [&](int chunk) { push(chunk, job_kind::backward_weight); };
      const int& forwards = next[0][static_cast<int>(job_kind::forward)];
      const int& returns = next[1][static_cast<int>(job_kind::forward)];
      // 1. Warm-up: 2 (p - r) - 1 forwards, until the first comes back up the V.
      for (int k = 0; k < 2 * (p - rank) - 1; ++k) forward(0);
      // 2. r times both forwards, until the first gradient comes.
      for (int k = 0; k < rank; ++k) {
        forward(1);
        forward(0);
      }
      // 3. p - r times the upper chunk alone.
      for (int k = 0; k < p - rank; ++k) {
        forward(1);
        input(1);
        weight(1);
      }
      // 4. Steady: all of the lower chunk, all of the upper one.
      while (returns < full) {
        if (forwards < full) forward(0);
        input(0);
        weight(0);
        forward(1);
        input(1);
        weight(1);
      }
      // 5. Cool-down: gradients first, the weights fill what is left.
      for (int k = 0; k < rank; ++k) {
        input(0);
        input(1);
      }
      for (int k = 0; k < p - rank; ++k) {
        input(0);
        weight(0);
      }
      for (int chunk : {1, 0})
        while (next[chunk][static_cast<int>(job_kind::backward_weight)] < full) weight(chunk);
    }
    return {};
  }
};

}  // namespace stretto::schedule
