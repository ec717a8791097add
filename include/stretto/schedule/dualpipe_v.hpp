#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/dual_order.hpp"

namespace stretto::schedule {

//! DualPipeV: DualPipe cut in half. The two stages of a rank are the two arms of a V, so that there
//! is one copy of the weights, and all micro-batches enter at rank 0. DeepSeek-AI 2025 (after Sea
//! AI Lab's cut-in-half; dualpipev.py); PyTorch's ScheduleDualPipeV. Any m; with m < 2 p the order
//! is that of 2 p micro-batches without those that do not exist.
struct dualpipe_v {
  static constexpr std::string_view name = "dualpipe_v";

  constexpr placement_kind placed() const { return placement_kind::wave; }
  constexpr verdict supports(const shape& sizes) const { return two_chunks_or_refuse(sizes); }
  constexpr int capacity(const shape& sizes) const { return 6 * sizes.microbatches; }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    const int p = sizes.ranks;
    const int m = sizes.microbatches;
    const int full = m > 2 * p ? m : 2 * p;
    for (int rank = 0; rank < p; ++rank) {
      dual_rank list{out, rank};
      list.halves[0] = {rank, 0, m};
      list.halves[1] = {2 * p - 1 - rank, 0, m};
      dual_order(list, p - 1 - rank, rank, full - 2 * p + rank + 1);
    }
    return {};
  }
};

}  // namespace stretto::schedule
