#pragma once

#include <cstdint>

#include "stretto/model/cost.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_close_up.hpp"
#include "stretto/schedule/parts/v_compaction.hpp"
#include "stretto/schedule/parts/v_cool_down.hpp"
#include "stretto/schedule/parts/v_fill.hpp"
#include "stretto/schedule/parts/v_orders.hpp"
#include "stretto/schedule/parts/v_pulled.hpp"

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

//! How a block's slots are closed up, and its backwards for the weights placed.
struct v_shortest_way {
  bool keep = false;   //!< see v_compaction,
  bool all = false;    //!< and there
  bool cool = false;   //!< the end is laid anew (v_cool_down),
  bool again = false;  //!< and all closed up once more (v_close_up);
  bool pulled = false;  //!< or as v_pulled does
  int fill = 0;

  static constexpr v_fill_rules fills[] = {{}, {.in_turn = true}, {.share = 2}};
  constexpr bool is_plain() const { return !cool && !again && !pulled; }

  //! @return false when the order never ends
  constexpr bool arrange(const shape& sizes, const v_block* blocks, v_orders& slots) const {
    if (pulled) return v_pulled(sizes, blocks, slots), true;
    v_compaction(sizes, blocks, keep, slots, all);
    if (cool) v_cool_down(sizes, slots);
    return !again || v_close_up(sizes, slots);
  }
};

//! Writes the lists of one block's order. For costs that are no slots no way to close these up and
//! to place the backwards for the weights is always best: each is measured, and the shortest that
//! fits the limits is taken, of equal ones the first. None keeps more than the slots do, nor than
//! the fullest rank of the first one that fits.
//! @param keep  of the two ways to close slots up, the one that comes first: see v_compaction
constexpr void emit_shortest(const shape& sizes, const job_table_view& table, const v_block* blocks,
                             bool keep, job_sink& out) {
  v_orders slots(sizes, most_kept(blocks, sizes));
  v_shortest_way best{.keep = keep};
  if (!takes_slots(sizes, table)) {
    std::int64_t least = unlimited;
    std::int64_t room = unlimited;  // the first one's: chunks may keep more than each other
    for (int number = 0; number < (v_pulled::serves(sizes) ? 17 : 16); ++number) {
      v_shortest_way way{.keep = (number & 1) == 0 ? keep : !keep,
                         .all = (number & 2) != 0,
                         .cool = (number & 4) != 0,
                         .again = (number & 8) != 0,
                         .pulled = number == 16};
      if (!way.arrange(sizes, blocks, slots)) continue;
      // Only those in turn know of the weights at the end.
      const bool in_turn = way.is_plain() && way.all;
      for (way.fill = in_turn ? 1 : 0; way.fill < (in_turn ? 2 : 3); ++way.fill) {
        const v_fill fill(sizes, table, slots, nullptr, v_shortest_way::fills[way.fill],
                          !way.is_plain());
        if (!fill.fits() || fill.most() > room || fill.makespan() >= least) continue;
        if (room == unlimited) room = fill.most();
        least = fill.makespan();
        best = way;
      }
    }
  }
  best.arrange(sizes, blocks, slots);
  v_fill_rules rules = v_shortest_way::fills[best.fill];
  rules.regardless = true;
  v_fill(sizes, table, slots, &out, rules, !best.is_plain());
}

}  // namespace stretto::schedule
