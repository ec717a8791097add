#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_closing.hpp"
#include "stretto/schedule/parts/v_orders.hpp"
#include "stretto/schedule/parts/v_timeline.hpp"

namespace stretto::schedule {

//! Lays the building block of a V schedule once for each micro-batch, then moves every job, from
//! left to right, as far ahead as v_closing puts it.
//! @param keep  the jobs stay where they are from the first backward of rank 0's first stage to
//!              its last forward
//! @param all   also backwards for the weights after the rank's last forward, which may run
//!              anywhere there
constexpr void v_compaction(const shape& sizes, const v_block* blocks, bool keep, v_orders& to,
                            bool all = false) {
  const int p = sizes.ranks;
  const int m = sizes.microbatches;
  const bool whole = blocks[0].whole;
  const int streams = whole ? v_weight_upper : v_streams;
  const v_use use{.width = whole ? 2 : 1,
                  .releases = whole ? v_back_down : v_weight_upper,
                  .most = to.most()};
  v_closing made(sizes, use, 4, to);  // an input is used within two periods after it is made
  const std::int64_t lists = std::int64_t{streams} * p;
  std::int32_t slots = 0;
  for (int rank = 0; rank < p; ++rank)
    for (int stream = 0; stream < streams; ++stream)
      if (blocks[rank].at[stream] > slots) slots = blocks[rank].at[stream];
  // Which streams have their next job in a slot: lists, by their first plus one.
  scratch<std::int32_t> first(slots + std::int64_t{v_period} * m + 1);
  scratch<std::int32_t> next(lists);
  scratch<std::int32_t> done(lists);
  for (int rank = 0; rank < p; ++rank)
    for (int stream = 0; stream < streams; ++stream) {
      const std::int32_t slot = blocks[rank].at[stream];
      next[rank * streams + stream] = first[slot];
      first[slot] = rank * streams + stream + 1;
    }
  const int keep_from = keep ? blocks[0].at[v_back_up] : 0;
  const int keep_to = keep ? blocks[0].at[v_down] + v_period * (m - 1) : -1;
  slots += v_period * (m - 1);
  for (std::int32_t slot = 0; slot <= slots; ++slot) {
    const bool stays = slot >= keep_from && slot <= keep_to;
    for (std::int32_t list = first[slot] - 1; list >= 0;) {
      const std::int32_t after = next[list] - 1;
      const int rank = list / streams;
      const int stream = list - rank * streams;
      const int microbatch = done[list]++;
      if (microbatch + 1 < m) {
        next[list] = first[slot + v_period];
        first[slot + v_period] = list + 1;
      }
      const int last_forward = blocks[rank].at[v_up] + v_period * (m - 1);
      if (stream < v_weight_upper || slot < last_forward || all)
        made.put(rank, stream, microbatch, stays ? slot : 0);
      list = after;
    }
  }
  made.finish();
}

}  // namespace stretto::schedule
