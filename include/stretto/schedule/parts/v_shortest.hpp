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
  return table.hops().longest(sizes.ranks) == 0;
}

//! How a block's slots are closed up.
struct v_shortest_way {
  bool keep = false;    //!< see v_compaction,
  bool all = false;     //!< and there
  bool ends = false;    //!< then the end is laid anew (v_cool_down), and all closed up once more
  bool pulled = false;  //!< as v_pulled does, instead

  constexpr bool is_plain() const { return !ends && !pulled; }
  //! @return false when the order never ends
  constexpr bool arrange(const shape& sizes, const v_block* blocks, v_orders& slots) const {
    if (pulled) return v_pulled(sizes, blocks, slots), true;
    v_compaction(sizes, blocks, keep, slots, all);
    if (!ends) return true;
    v_cool_down(sizes, slots);
    return v_close_up(sizes, slots);
  }
};

//! Writes the lists of one block's order. For costs that are no slots no way to close these up and
//! to place the backwards for the weights is always best: each is measured, and the shortest that
//! fits the limits is taken, of equal ones the first. None keeps more than the slots do, nor than
//! the fullest rank of the first one that fits. Of steps too large for v_pulled, only some are.
//! @param keep  of the two ways to close slots up, the one that comes first: see v_compaction
constexpr void emit_shortest(const shape& sizes, const job_table_view& table, const v_block* blocks,
                             bool keep, job_sink& out) {
  constexpr v_fill_rules fills[] = {{}, {.in_turn = true}, {.share = 2}};
  constexpr int plain = 4;  // keep and all; then the first keep with other ends, and v_pulled
  v_orders slots(sizes, most_kept(blocks, sizes));
  v_shortest_way best{.keep = keep};
  v_fill_rules rules;
  if (!takes_slots(sizes, table)) {
    std::int64_t least = unlimited;
    std::int64_t room = unlimited;  // the first one's: chunks may keep more than each other
    const int ways = v_pulled::serves(sizes) ? plain + 3 : plain;
    for (int number = 0; number < ways; ++number) {
      v_shortest_way way{.keep = keep, .all = number % 4 >= 2};
      if (number < plain && number % 2 == 1) way.keep = !keep;
      if (number >= plain) {
        way.all = number == plain + 1;
        way.ends = number < plain + 2;
        way.pulled = !way.ends;
      }
      if (!way.arrange(sizes, blocks, slots)) continue;
      // Only those in turn know of the weights at the end, and of their authors' places.
      const bool in_turn = way.pulled || (way.all && !way.ends);
      for (int by = in_turn ? 1 : 0; by < (in_turn ? 2 : 3); ++by) {
        const v_fill fill(sizes, table, slots, nullptr, fills[by], !way.is_plain());
        if (!fill.fits() || fill.most() > room || fill.makespan() >= least) continue;
        if (room == unlimited) room = fill.most();
        least = fill.makespan();
        best = way;
        rules = fills[by];
      }
    }
  }
  best.arrange(sizes, blocks, slots);
  rules.regardless = true;
  v_fill(sizes, table, slots, &out, rules, !best.is_plain());
}

}  // namespace stretto::schedule
