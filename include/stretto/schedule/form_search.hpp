#pragma once

#include <cstddef>
#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/replay.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/variants.hpp"

namespace stretto::schedule {

//! What a search wants to know of lists that it has not made itself: whether they keep within the
//! limits, and how long they take. Of jobs alone that each run by themselves, once.
struct form_observer : replay_observer {
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

  constexpr form_observer(const placement& where_, const job_table_view& table_,
                          scratch<rank_state>& ranks_)
      : where(where_), table(table_), ranks(ranks_) {
    for (int rank = 0; rank < where.ranks; ++rank) ranks[rank].level = table.base_of(rank);
  }
  constexpr void ran(int rank, int /*step*/, const job& work, std::int64_t start,
                     std::int64_t end) {
    rank_state& at = ranks[rank];
    const job_cost& cost = table.at(rank, where.chunk_of(work.stage, work.microbatch), work.kind);
    const std::int64_t need = cost.change > cost.peak ? cost.change : cost.peak;
    if (at.level + need > table.limit_of(rank)) fits = false;
    at.level += cost.change;
    if (at.start < 0) at.start = start;
    if (end > makespan) makespan = end;
    if (end - at.start > span) span = end - at.start;
  }
};

//! The variants of a search that are closed forms as they are: none of those can then be shorter
//! than what the search finds.
template <Policy... Forms>
struct form_search {
  objective_kind objective;

  static constexpr int variants = static_cast<int>(sizeof...(Forms));

  constexpr bool serves(const shape& sizes, int tried) const {
    bool found = false;
    int form = 0;
    ((form++ == tried ? void(found = Forms{}.supports(sizes).ok()) : void()), ...);
    return found;
  }
  //! @param out  where the lists go, if they fit; none: only measures
  constexpr variant_score run(const shape& sizes, const job_table_view& table, int tried,
                              job_sink* out) const {
    variant_score found;
    int form = 0;
    ((form++ == tried ? void(found = measured(Forms{}, sizes, table, out)) : void()), ...);
    return found;
  }

 private:
  template <class Form>
  constexpr variant_score measured(const Form& made, const shape& sizes,
                                   const job_table_view& table, job_sink* out) const {
    if (!made.supports(sizes)) return {};
    const placement where = place(made.placed(), sizes);
    const int stride = made.capacity(sizes);
    scratch<job> items(std::int64_t{sizes.ranks} * stride);
    scratch<std::int32_t> counts(sizes.ranks);
    job_sink lists{items.data(), counts.data(), sizes.ranks, stride};
    if (!made.emit(sizes, table, lists)) return {};
    scratch<form_observer::rank_state> ranks(sizes.ranks);
    form_observer seen(where, table, ranks);
    const replay_input input{
        .rows = lists.rows(), .where = where, .microbatches = sizes.microbatches, .costs = table};
    if (!replay(input, seen) || !seen.fits) return {};
    for (int rank = 0; out != nullptr && rank < sizes.ranks; ++rank)
      for (const job& work : lists.rows().row(rank)) out->push(rank, work);
    return score_of(objective, seen.makespan, seen.span);
  }
};

}  // namespace stretto::schedule
