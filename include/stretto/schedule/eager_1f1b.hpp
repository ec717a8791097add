#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/push_in_turn.hpp"

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
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      const auto push = [&](job_kind kind) {
        return [&out, rank, kind](int k) { out.push(rank, {rank, k, 0, kind}); };
      };
      const int followers = sizes.ranks - 1 - rank;
      push_in_turn(sizes.microbatches, 2 * followers, push(job_kind::forward),
                   push(job_kind::backward));
    }
    return {};
  }
};

}  // namespace stretto::schedule
