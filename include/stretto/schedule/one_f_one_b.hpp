#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/push_in_turn.hpp"

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
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      const auto push = [&](job_kind kind) {
        return [&out, rank, kind](int k) { out.push(rank, {rank, k, 0, kind}); };
      };
      const int followers = sizes.ranks - 1 - rank;
      push_in_turn(sizes.microbatches, followers, push(job_kind::forward),
                   push(job_kind::backward));
    }
    return {};
  }
};

}  // namespace stretto::schedule
