#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/eager_1f1b.hpp"

namespace stretto::schedule {

//! 1F1B whose steady phase runs each backward as one node with a forward of another micro-batch, so
//! that the communication of either lies behind computation of the other. A pair's outputs leave at
//! its end, so the warm-up is that of eager_1f1b: with 1F1B's own a rank would wait for a pair on
//! the way to its neighbour and one on the way back. It pays where pairs are that much shorter than
//! their halves; Paddle's 1F1B with backward-forward overlap has this without the warm-up.
struct paired_1f1b {
  static constexpr std::string_view name = "paired_1f1b";

  constexpr placement_kind placed() const { return placement_kind::looped; }
  constexpr verdict supports(const shape& sizes) const { return one_chunk_or_refuse(sizes); }
  constexpr int capacity(const shape& sizes) const { return 2 * sizes.microbatches; }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    write_eager_1f1b(sizes, true, out);
    return {};
  }
};

}  // namespace stretto::schedule
