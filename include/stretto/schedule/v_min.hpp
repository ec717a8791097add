#pragma once

#include <string_view>

#include "stretto/base/scratch.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_shortest.hpp"

namespace stretto::schedule {

//! V-Min: the least memory that a V of two chunks can keep without a bubble in every period: at
//! most (p + 4) / 3 activations of a stage, rounded down, about a third of what 1F1B keeps. Its
//! bubble grows where f, b and w differ. Any m. Qi et al. 2024, "Pipeline Parallelism with
//! Controllable Memory".
struct v_min {
  static constexpr std::string_view name = "v_min";

  constexpr placement_kind placed() const { return placement_kind::wave; }
  constexpr verdict supports(const shape& sizes) const { return two_chunks_or_refuse(sizes); }
  constexpr int capacity(const shape& sizes) const { return v_streams * sizes.microbatches; }
  constexpr verdict emit(const shape& sizes, const job_table_view& table, job_sink& out) const {
    scratch<v_block> blocks(sizes.ranks);
    // Every stream goes a slot a rank; without the free slots two would meet.
    lay({.fast = 1, .slow = 1, .back = sizes.ranks % 3 == 0 ? 2 : 0}, sizes.ranks, blocks.data());
    emit_shortest(sizes, table, blocks.data(), false, out);
    return {};
  }
};

}  // namespace stretto::schedule
