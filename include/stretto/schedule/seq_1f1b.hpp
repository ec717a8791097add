#pragma once

#include <cstdint>
#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/push_in_turn.hpp"

namespace stretto::schedule {

//! 1F1B over slices: each micro-batch is cut along its sequence into k slices, whose forwards run
//! in order and whose backwards run in reverse, because an earlier slice's keys and values collect
//! gradients from all later ones. The bubble is that of 1F1B divided by k; rank r keeps at most
//! min(m k, p - r - 1 + k) slices alive where 1F1B keeps p - r times k. Seq1F1B (Sun et al. 2024,
//! arXiv 2406.03488); here for any m. The job table holds the costs of one slice.
struct seq_1f1b {
  static constexpr std::string_view name = "seq_1f1b";

  constexpr placement_kind placed() const { return placement_kind::looped; }
  constexpr verdict supports(const shape& sizes) const {
    if (sizes.chunks > 1) return refuse(fault::unsupported, reason::chunks_not_one);
    return positive_or_refuse(sizes);
  }
  constexpr int capacity(const shape& sizes) const { return 2 * sizes.microbatches * sizes.slices; }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    const int slices = sizes.slices;
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      int microbatch = 0, slice = 0;                     // of the next forward
      int back_microbatch = 0, back_slice = slices - 1;  // of the next backward
      const auto forward = [&](int) {
        out.push(rank, {rank, microbatch, static_cast<std::int16_t>(slice), job_kind::forward});
        if (++slice == slices) slice = 0, ++microbatch;
      };
      const auto backward = [&](int) {
        out.push(rank, {rank, back_microbatch, static_cast<std::int16_t>(back_slice),
                        job_kind::backward});
        if (back_slice-- == 0) back_slice = slices - 1, ++back_microbatch;
      };
      // All but one slice of the first micro-batch on the last rank.
      const int ahead = sizes.ranks - 1 - rank + slices - 1;
      push_in_turn(sizes.microbatches * slices, ahead, forward, backward);
    }
    return {};
  }
};

}  // namespace stretto::schedule
