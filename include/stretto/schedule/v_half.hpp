#pragma once

#include <cstdint>
#include <string_view>

#include "stretto/base/scratch.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_shortest.hpp"

namespace stretto::schedule {

//! V-Half: half of what 1F1B keeps, at most (p + 2) / 2 activations of a stage, rounded down, and
//! half its bubble. No bubble in every period as long as w + 2 b >= 2 f and w + 2 f >= 2 b. Any m.
//! Qi et al. 2024, "Pipeline Parallelism with Controllable Memory", whose order is among the ways
//! that are tried.
struct v_half {
  static constexpr std::string_view name = "v_half";

  constexpr placement_kind placed() const { return placement_kind::wave; }
  constexpr verdict supports(const shape& sizes) const { return two_chunks_or_refuse(sizes); }
  constexpr int capacity(const shape& sizes) const { return v_streams * sizes.microbatches; }
  constexpr verdict emit(const shape& sizes, const job_table_view& table, job_sink& out) const {
    scratch<v_block> blocks(sizes.ranks);
    // Without the free slots two streams would meet.
    const int apart = sizes.ranks % 2 == 0 ? 3 : 0;
    lay({.fast = 2, .slow = 2, .back = apart, .home = 1}, sizes.ranks, blocks.data());
    emit_shortest(sizes, table, blocks.data(), forwards_are_longer(sizes, table), out);
    return {};
  }

 private:
  //! Then the block as it is mostly serves the steady part best; else its slots had better close
  //! up, which lets backwards go first.
  static constexpr bool forwards_are_longer(const shape& sizes, const job_table_view& table) {
    std::int64_t longer = 0;
    for (int rank = 0; rank < sizes.ranks; ++rank)
      for (int chunk = 0; chunk < 2; ++chunk)
        longer += table.at(rank, chunk, job_kind::forward).time -
                  table.at(rank, chunk, job_kind::backward_input).time;
    return longer >= 0;
  }
};

}  // namespace stretto::schedule
