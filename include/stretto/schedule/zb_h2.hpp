#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/late_weights.hpp"

namespace stretto::schedule {

//! Zero bubble with twice 1F1B's memory: 2 (p - 1 - r) + 1 forwards ahead fill the start as the
//! weights put off by 2 r rounds fill the end. A rank is never idle between its first and its last
//! job when f = b = w and m >= 2 p - 1, with 2 p - 1 micro-batches alive on every rank. ZB-H2 (Qi
//! et al. 2023), which wants as many; here any m, of which fewer put weights off for no more rounds
//! than have forwards; and any number k of slices: with costs of one, k - 1 slices more are alive.
struct zb_h2 {
  static constexpr std::string_view name = "zb_h2";

  constexpr placement_kind placed() const { return placement_kind::looped; }
  constexpr verdict supports(const shape& sizes) const { return one_sliced_chunk_or_refuse(sizes); }
  constexpr int capacity(const shape& sizes) const { return 3 * sizes.microbatches * sizes.slices; }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      const int warmup = 2 * (sizes.ranks - 1 - rank) + 1;
      push_late_weights(sizes, rank, warmup, rounds_of_forwards(sizes, warmup, 2 * rank), out);
    }
    return {};
  }
};

}  // namespace stretto::schedule
