#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "stretto/schedule/parts/backward_walk.hpp"
#include "stretto/schedule/parts/late_weights.hpp"
#include "stretto/schedule/parts/microbatch_groups.hpp"

namespace stretto::schedule {

//! Interleaved 1F1B with split backwards. The half warm-up has one forward for each rank that
//! follows, because a round's backward for the input is as short as its forward, and rank r puts
//! off its backwards for the weights by r rounds; one chunk: ZB-H1. It is that of PyTorch's
//! ScheduleInterleavedZeroBubble, which wants m / p (rounded down) to divide m. The standard one
//! has two, as interleaved 1F1B's, which give messages time to arrive; weights are put off by 2 r
//! rounds, or as many as have forwards, and every rank keeps what the first of interleaved 1F1B
//! does; one chunk: ZB-H2. Any m, v and number k of slices, whose costs are those of one: the
//! bubble is one of slices, and groups need only p / k micro-batches.
struct interleaved_zb {
  static constexpr std::string_view name = "interleaved_zb";
  //! Micro-batches per group, at least: 0 for the fewest that do, min(p / k, m), else from that to
  //! m; what does not fill a group goes evenly into the others.
  int group = 0;
  warmup_kind warmup = warmup_kind::half;  //!< or standard
  backwards_kind backwards = backwards_kind::groups;

  constexpr placement_kind placed() const { return placement_kind::looped; }
  constexpr verdict supports(const shape& sizes) const {
    if (warmup != warmup_kind::half && warmup != warmup_kind::standard)
      return refuse(fault::unsupported, reason::warmup_not_served);
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
      backward_walk inputs(groups, backwards), weights(groups, backwards);
      const auto backward = [&](backward_walk& walk, job_kind kind) {
        const auto visit = walk.next();
        out.push(rank, {where.stage_of(rank, visit.chunk), visit.microbatch, visit.slice, kind});
      };
      // w = (v - 1) g k + (p - 1 - r) + k, or 2 (p - 1 - r), with g the length of the first group:
      // its first micro-batch goes through the rank's chunks, then a step for each rank that
      // follows, or two.
      const bool half = warmup == warmup_kind::half;
      const int first = (sizes.chunks - 1) * groups.first * sizes.slices +
                        (half ? 1 : 2) * (sizes.ranks - 1 - rank) + 1;
      const int ahead = first + sizes.slices - 1;
      const int late = half ? rank : rounds_of_forwards(sizes, first, 2 * rank);
      // 1. Warm-up: min(w, m v k) forwards.
      for (int k = 0; k < ahead && k < steps; ++k) forward(k);
      // 2. m v k backwards for the input, each followed by the one for the weights of `late` rounds
      //    before and the next forward, as far as there are any.
      for (int k = 0; k < steps; ++k) {
        backward(inputs, job_kind::backward_input);
        if (k >= late) backward(weights, job_kind::backward_weight);
        if (k + ahead < steps) forward(k + ahead);
      }
      // 3. The weights that are left.
      for (int k = late < steps ? steps - late : 0; k < steps; ++k)
        backward(weights, job_kind::backward_weight);
    }
    return {};
  }
};

}  // namespace stretto::schedule
