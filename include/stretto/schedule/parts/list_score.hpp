#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/replay.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/variants.hpp"

namespace stretto::schedule {

//! What a search wants to know of lists that it has not timed itself: whether they keep within the
//! limits, and how long they take. Of jobs alone that each run by themselves, once.
struct list_observer : replay_observer {
  struct rank_state {
    std::int64_t level = 0;  // of memory
    std::int64_t start = -1;
  };
  const placement& where;
  const job_table_view& table;
  scratch<rank_state>& ranks;  // a reference: a class that owns scratch is no literal type for nvcc
  std::int64_t makespan = 0;
  std::int64_t span = 0;
  bool fits = true;
  bool alike = table.classes.empty();  // asked once: a call a job costs a compiler

  constexpr list_observer(const placement& where_, const job_table_view& table_,
                          scratch<rank_state>& ranks_)
      : where(where_), table(table_), ranks(ranks_) {
    for (int rank = 0; rank < where.ranks; ++rank) ranks[rank].level = table.base_of(rank);
  }
  constexpr void ran(int rank, int /*step*/, const job& work, std::int64_t start,
                     std::int64_t end) {
    rank_state& at = ranks[rank];
    const job_cost& cost =
        alike ? table.at(rank, where.chunk_of(work.stage, work.microbatch), work.kind)
              : table.of(rank, where.chunk_of(work.stage, work.microbatch), work);
    const std::int64_t need = cost.change > cost.peak ? cost.change : cost.peak;
    if (at.level + need > table.limit_of(rank)) fits = false;
    at.level += cost.change;
    if (at.start < 0) at.start = start;
    if (end > makespan) makespan = end;
    if (end - at.start > span) span = end - at.start;
  }
};

//! The score of whole lists, of which it is not known that they fit or even end.
constexpr variant_score score_lists(objective_kind objective, const shape& sizes,
                                    const placement& where, const job_table_view& table,
                                    const job_rows& lists) {
  scratch<list_observer::rank_state> ranks(sizes.ranks);
  list_observer seen(where, table, ranks);
  const replay_input input{
      .rows = lists, .where = where, .microbatches = sizes.microbatches, .costs = table};
  if (!replay(input, seen) || !seen.fits) return {};
  return score_of(objective, seen.makespan, seen.span);
}

}  // namespace stretto::schedule
