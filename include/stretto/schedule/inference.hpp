#pragma once

#include <cstdint>
#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/dual_order.hpp"
#include "stretto/schedule/microbatch_groups.hpp"

namespace stretto::schedule {

//! Forwards alone, in the order of interleaved 1F1B: evaluation, scoring, prompt processing.
//! Megatron-LM's forward_only; DeepSpeed's InferenceSchedule is v = 1. On two replicas in opposite
//! directions in the order of DualPipe's forwards.
struct inference {
  static constexpr std::string_view name = "inference";
  static constexpr bool forward_only = true;  //!< no job has a backward
  //! Micro-batches per group: 0 for min(p, m), else from min(p, m) to m.
  int group = 0;
  remainder_kind remainder = remainder_kind::first;
  placement_kind placement = placement_kind::looped;

  constexpr placement_kind placed() const { return placement; }
  constexpr verdict supports(const shape& sizes) const {
    if (placement == placement_kind::bidirectional) {
      if (sizes.slices > 1) return refuse(fault::unsupported, reason::slices_not_one);
      if (group != 0) return refuse(fault::unsupported, reason::placement_not_served);
      return two_ways_or_refuse(sizes);
    }
    if (placement != placement_kind::looped && placement != placement_kind::wave)
      return refuse(fault::unsupported, reason::placement_not_served);
    const verdict sound = positive_or_refuse(sizes);
    return sound ? group_or_refuse(sizes, group) : sound;
  }
  constexpr int capacity(const shape& sizes) const {
    return sizes.microbatches * sizes.chunks * sizes.slices;
  }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    if (placement == placement_kind::bidirectional) {
      for (int rank = 0; rank < sizes.ranks; ++rank) {
        dual_rank list{.out = out, .rank = rank, .forward_only = true};
        dual_order_two_ways(list, sizes.ranks, sizes.microbatches);
      }
      return {};
    }
    const auto where = place(placement, sizes);
    const auto groups = group_microbatches(sizes, group, remainder);
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      // 1. m v forwards, each slice by slice.
      for (int k = 0; k < groups.steps(); ++k) {
        const auto [chunk, microbatch] = groups.at(k);
        for (int slice = 0; slice < sizes.slices; ++slice)
          out.push(rank, {where.stage_of(rank, chunk), microbatch, static_cast<std::int16_t>(slice),
                          job_kind::forward});
      }
    }
    return {};
  }
};

}  // namespace stretto::schedule
