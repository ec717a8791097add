#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/interleaved.hpp"

namespace stretto::schedule {

//! Interleaved 1F1B of any v, or 1F1B, whose steady phase runs each backward as one node with a
//! forward of another micro-batch, so that the communication of either lies behind computation of
//! the other. A pair's outputs leave at its end, so the warm-up is warmup_kind::paired, with one
//! chunk that of eager_1f1b: with the standard one a rank would wait for a pair on the way to its
//! neighbour and one on the way back. It pays where pairs are that much shorter than their halves.
//! Megatron-LM's combined 1F1B (overlap_moe_expert_parallel_comm), which wants v >= 2; Paddle's
//! interleaved pipeline with backward-forward overlap, and its 1F1B without the warm-up.
struct paired_1f1b {
  static constexpr std::string_view name = "paired_1f1b";
  //! Micro-batches per group, what does not fill one, and then backwards: as interleaved has them.
  int group = 0;
  remainder_kind remainder = remainder_kind::even;
  backwards_kind backwards = backwards_kind::groups;

  constexpr placement_kind placed() const { return order().placed(); }
  constexpr verdict supports(const shape& sizes) const { return order().supports(sizes); }
  constexpr int capacity(const shape& sizes) const { return order().capacity(sizes); }
  constexpr verdict emit(const shape& sizes, const job_table_view& table, job_sink& out) const {
    return order().emit(sizes, table, out);
  }

 private:
  constexpr interleaved order() const {
    return {.group = group,
            .remainder = remainder,
            .warmup = warmup_kind::paired,
            .backwards = backwards};
  }
};

}  // namespace stretto::schedule
