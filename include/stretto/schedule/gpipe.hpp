#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/push_slices.hpp"

namespace stretto::schedule {

//! Fill and drain: all forwards, then all backwards, chunk after chunk. GPipe (Huang et al. 2019);
//! Paddle's FThenB. Live activations grow with the number of micro-batches. In slices, whose costs
//! are those of one, the bubble is one of slices: TeraPipe (Li et al. 2021, arXiv 2102.07988).
struct gpipe {
  static constexpr std::string_view name = "gpipe";
  placement_kind placement = placement_kind::looped;

  constexpr placement_kind placed() const { return placement; }
  constexpr verdict supports(const shape& sizes) const {
    if (placement != placement_kind::looped && placement != placement_kind::wave)
      return refuse(fault::unsupported, reason::placement_not_served);
    return positive_or_refuse(sizes);
  }
  constexpr int capacity(const shape& sizes) const {
    return 2 * sizes.microbatches * sizes.chunks * sizes.slices;
  }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    const auto where = place(placement, sizes);
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      for (int chunk = 0; chunk < sizes.chunks; ++chunk)
        for (int microbatch = 0; microbatch < sizes.microbatches; ++microbatch)
          push_slices(sizes, rank, {where.stage_of(rank, chunk), microbatch}, out);
      for (int chunk = sizes.chunks - 1; chunk >= 0; --chunk)
        for (int microbatch = 0; microbatch < sizes.microbatches; ++microbatch)
          push_slices(sizes, rank, {where.stage_of(rank, chunk), microbatch, 0, job_kind::backward},
                      out);
    }
    return {};
  }
};

}  // namespace stretto::schedule
