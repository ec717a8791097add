#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/microbatch_groups.hpp"

namespace stretto::schedule {

//! Interleaved 1F1B with split backwards: of its warm-up half the forwards for the ranks behind,
//! because a round's backward for the input is as short as its forward, and rank r puts off its
//! backwards for the weights by r rounds.
//! PyTorch's ScheduleInterleavedZeroBubble, which wants m / p (rounded down) to divide m; here any
//! m, v and number k of slices, whose costs are those of one: the bubble is one of slices, and groups
//! need only p / k micro-batches. One chunk: ZB-H1.
struct interleaved_zb {
  static constexpr std::string_view name = "interleaved_zb";
  //! Micro-batches per group, at least: 0 for the fewest that do, min(p / k, m), else from that to
  //! m; what does not fill a group goes evenly into the others.
  int group = 0;

  constexpr placement_kind placed() const { return placement_kind::looped; }
  constexpr verdict supports(const shape& sizes) const {
    const verdict sound = positive_or_refuse(sizes);
    return sound ? group_or_refuse(sizes, group) : sound;
  }
  constexpr int capacity(const shape& sizes) const {
    return 3 * sizes.microbatches * sizes.chunks * sizes.slices;
  }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    const auto where = place(placed(), sizes);
    const auto groups = group_microbatches(sizes, group, remainder_kind::even);
    const int steps = groups.steps();
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      const auto forward = [&](int step) {
        const auto visit = groups.at(step);
        out.push(rank, {where.stage_of(rank, visit.chunk), visit.microbatch, visit.slice,
                        job_kind::forward});
      };
      const auto backward = [&](int step, job_kind kind) {
        const auto visit = groups.back_at(step);
        out.push(rank, {where.stage_of(rank, visit.chunk), visit.microbatch, visit.slice, kind});
      };
      // w = (v - 1) g k + p - r + k - 1, with g the length of the first group: its first
      // micro-batch goes through the rank's chunks, then a step for each rank that follows.
      const int warmup =
          (sizes.chunks - 1) * groups.first * sizes.slices + sizes.ranks - rank + sizes.slices - 1;
      // 1. Warm-up: min(w, m v k) forwards.
      for (int k = 0; k < warmup && k < steps; ++k) forward(k);
      // 2. m v k backwards for the input, each followed by the one for the weights of r rounds
      //    before and the next forward, as far as there are any.
      for (int k = 0; k < steps; ++k) {
        backward(k, job_kind::backward_input);
        if (k >= rank) backward(k - rank, job_kind::backward_weight);
        if (k + warmup < steps) forward(k + warmup);
      }
      // 3. The weights that are left.
      for (int k = rank < steps ? steps - rank : 0; k < steps; ++k)
        backward(k, job_kind::backward_weight);
    }
    return {};
  }
};

}  // namespace stretto::schedule
