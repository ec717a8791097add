#pragma once

#include <string_view>

#include "stretto/base/scratch.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_compaction.hpp"
#include "stretto/schedule/parts/v_orders.hpp"

namespace stretto::schedule {

//! 1F1B on a V of two chunks: whole backwards, and on every rank at most the activations of
//! floor(2 p / 3) + 1 micro-batches, where 1F1B keeps those of p on its first. Any m. Qi et al.
//! 2024, "Pipeline Parallelism with Controllable Memory"; V-1F1B of
//! sail-sg/zero-bubble-pipeline-parallelism.
struct v_1f1b {
  static constexpr std::string_view name = "v_1f1b";

  constexpr placement_kind placed() const { return placement_kind::wave; }
  constexpr verdict supports(const shape& sizes) const { return two_chunks_or_refuse(sizes); }
  constexpr int capacity(const shape& sizes) const { return 4 * sizes.microbatches; }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    const int p = sizes.ranks;
    scratch<v_block> blocks(p);
    lay(p, blocks.data());
    v_orders made(sizes, most_kept(blocks.data(), sizes));
    v_compaction(sizes, blocks.data(), false, made);
    for (int rank = 0; rank < p; ++rank) {
      const int stages[2] = {rank, 2 * p - 1 - rank};
      int done[v_weight_upper] = {};
      const v_placed* order = made.order(rank);
      for (int step = 0; step < 4 * sizes.microbatches; ++step) {
        const int stream = order[step].stream();
        out.push(rank, {stages[v_chunk(stream)], done[stream]++, 0, v_kind(stream, true)});
      }
    }
    return {};
  }

 private:
  //! Forwards go a slot a rank, backwards two, and three more every third rank: there the two slots
  //! that are free are those of the other backward.
  static constexpr void lay(int p, v_block* blocks) {
    int slot = 2 * p + (p % 3 == 0 ? 3 : 0);
    for (int rank = 0; rank < p; ++rank) {
      blocks[rank] = {.at = {rank, 2 * p - 1 - rank, slot}, .whole = true};
      slot += (p - rank) % 3 == 2 ? 5 : 2;
    }
    for (int rank = p - 1; rank >= 0; --rank) {
      if ((p - rank) % 3 == 0) slot += 3;
      blocks[rank].at[v_back_up] = slot;
      slot += 2;
    }
  }
};

}  // namespace stretto::schedule
