#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/list_score.hpp"
#include "stretto/schedule/variants.hpp"

namespace stretto::schedule {

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
    scratch_lists lists(sizes.ranks, made.capacity(sizes));
    if (!made.emit(sizes, table, lists.sink)) return {};
    const variant_score found = score_lists(objective, sizes, where, table, lists.sink.rows());
    const job_rows made_rows = lists.sink.rows();
    for (int rank = 0; out != nullptr && found.fits && rank < sizes.ranks; ++rank)
      for (const job& work : made_rows.row(rank)) out->push(rank, work);
    return found;
  }
};

}  // namespace stretto::schedule
