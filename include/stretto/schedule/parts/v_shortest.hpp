#pragma once

#include <cstdint>

#include "stretto/model/cost.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_compaction.hpp"
#include "stretto/schedule/parts/v_fill.hpp"
#include "stretto/schedule/parts/v_orders.hpp"

namespace stretto::schedule {

//! Whether a slot of a V's block tells what it takes: every job of two chunks as much time as every
//! other, a message none.
constexpr bool takes_slots(const shape& sizes, const job_table_view& table) {
  const std::int64_t slot = table.at(0, 0, job_kind::forward).time;
  for (int rank = 0; rank < sizes.ranks; ++rank)
    for (int chunk = 0; chunk < 2; ++chunk)
      for (const job_kind kind :
           {job_kind::forward, job_kind::backward_input, job_kind::backward_weight})
        if (table.at(rank, chunk, kind).time != slot) return false;
  return table.communication == 0;
}

//! Writes the lists of one block's order. For costs that are no slots no way to close these up and
//! to place the backwards for the weights is always best: each is measured, and the shortest that
//! fits the limits is taken, of equal ones the first. None keeps more than the slots do, nor than
//! the fullest rank of the first one that fits.
//! @param keep  of the two ways to close slots up, the one that comes first: see v_compaction
constexpr void emit_shortest(const shape& sizes, const job_table_view& table, const v_block* blocks,
                             bool keep, job_sink& out) {
  constexpr v_fill_rules fills[] = {{}, {.in_turn = true}, {.share = 2}};
  v_orders slots(sizes, most_kept(blocks, sizes));
  const auto close_up = [&](bool kept, bool all) { v_compaction(sizes, blocks, kept, slots, all); };
  bool kept = keep;
  bool all = false;
  v_fill_rules rules;
  if (!takes_slots(sizes, table)) {
    std::int64_t least = unlimited;
    std::int64_t room = unlimited;  // the first one's: chunks may keep more than each other
    for (const bool also : {false, true})
      for (const bool close : {keep, !keep}) {
        close_up(close, also);
        // Only those in turn know of the weights at the end.
        for (int by = also ? 1 : 0; by < (also ? 2 : 3); ++by) {
          const v_fill fill(sizes, table, slots, nullptr, fills[by]);
          if (!fill.fits() || fill.most() > room || fill.makespan() >= least) continue;
          if (room == unlimited) room = fill.most();
          least = fill.makespan();
          kept = close;
          all = also;
          rules = fills[by];
        }
      }
  }
  close_up(kept, all);
  rules.regardless = true;
  v_fill(sizes, table, slots, &out, rules);
}

}  // namespace stretto::schedule
