#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/dual_order.hpp"

namespace stretto::schedule {

//! DualPipe: two replicas of the model laid in opposite directions over the same ranks, half of the
//! micro-batches to each. Where the ways cross, a forward of one runs beside a backward of the
//! other as a pair. Bubble (p/2 - 1)(f&B + B - 3 w) with B = b + w where f = b = w and m is even,
//! at least 2 p; p + 1 stages' activations, weights twice. DeepSeek-AI 2024 (DeepSeek-V3;
//! dualpipe.py). An even number of ranks and any m; with fewer than p micro-batches a direction,
//! the order is that of p without those that do not exist.
struct dualpipe {
  static constexpr std::string_view name = "dualpipe";

  constexpr placement_kind placed() const { return placement_kind::bidirectional; }
  constexpr verdict supports(const shape& sizes) const { return two_ways_or_refuse(sizes); }
  constexpr int capacity(const shape& sizes) const { return 3 * sizes.microbatches; }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      dual_rank list{out, rank};
      dual_order_two_ways(list, sizes.ranks, sizes.microbatches);
    }
    return {};
  }
};

}  // namespace stretto::schedule
