#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/zbv_order.hpp"

namespace stretto::schedule {

//! ZB-V in its fixed form: two chunks per rank laid as a V, so that rank 0 holds the first stage
//! and the last and gradients come back to it at once. With f = b = w and m >= 2 p - 1 a rank is
//! never idle between its first and its last job, with 1F1B's memory: at most 2 p chunks'
//! activations. Qi et al. 2023; PyTorch's ScheduleZBVZeroBubble. Any m; with m < 2 p - 1 the order
//! is that of 2 p - 1 micro- batches without those that do not exist.
struct zbv {
  static constexpr std::string_view name = "zbv";

  constexpr placement_kind placed() const { return placement_kind::wave; }
  constexpr verdict supports(const shape& sizes) const { return two_chunks_or_refuse(sizes); }
  constexpr int capacity(const shape& sizes) const { return 6 * sizes.microbatches; }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      const int stages[2] = {rank, 2 * sizes.ranks - 1 - rank};
      int next[2][4] = {};  // of each chunk and kind
      zbv_order(sizes.ranks, rank, sizes.microbatches, [&](int chunk, job_kind kind) {
        const int microbatch = next[chunk][static_cast<int>(kind)]++;
        if (microbatch < sizes.microbatches) out.push(rank, {stages[chunk], microbatch, 0, kind});
      });
    }
    return {};
  }
};

}  // namespace stretto::schedule
