#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/push_slices.hpp"

namespace stretto::schedule {

//! Breadth first: every micro-batch through a chunk before the next chunk, then all the way back,
//! the last micro-batch first. A stage's weights are needed in one stretch each way, which suits
//! sharded weights. Breadth-First Pipeline Parallelism (Lamy-Poirier 2023), PyTorch's LoopedBFS.
//! A stage's gradients are summed from the last micro-batch down.
struct looped_bfs {
  static constexpr std::string_view name = "looped_bfs";

  constexpr placement_kind placed() const { return placement_kind::looped; }
  constexpr verdict supports(const shape& sizes) const { return positive_or_refuse(sizes); }
  constexpr int capacity(const shape& sizes) const {
    return 2 * sizes.microbatches * sizes.chunks * sizes.slices;
  }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    const auto where = place(placed(), sizes);
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      // 1. m v forwards, chunk after chunk.
      for (int chunk = 0; chunk < sizes.chunks; ++chunk)
        for (int microbatch = 0; microbatch < sizes.microbatches; ++microbatch)
          push_slices(sizes, rank, {where.stage_of(rank, chunk), microbatch}, out);
      // 2. The same way back.
      for (int chunk = sizes.chunks - 1; chunk >= 0; --chunk)
        for (int microbatch = sizes.microbatches - 1; microbatch >= 0; --microbatch)
          push_slices(sizes, rank, {where.stage_of(rank, chunk), microbatch, 0, job_kind::backward},
                      out);
    }
    return {};
  }
};

}  // namespace stretto::schedule
