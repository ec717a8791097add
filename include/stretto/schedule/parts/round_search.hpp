#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/parts/kept_room.hpp"
#include "stretto/schedule/parts/round_pass.hpp"
#include "stretto/schedule/parts/round_rules.hpp"
#include "stretto/schedule/variants.hpp"

namespace stretto::schedule {

//! The variants of a search that passes in rounds: first ZB-VPP's, then ZB-V's, with each choice of
//! where gaps take more than they hold; then ZB-V's with both and less strict by a message; then
//! ZB-VPP's as it was first published. As
//! their authors do, a pass is repeated with the idle times that it has left allowed, for as long
//! as the longest of them becomes shorter; the best is taken.
struct round_search {
  objective_kind objective;

  static constexpr int choices = 4;
  static constexpr int lean = 3 * choices + 1;
  static constexpr int variants = lean + choices;

  constexpr bool serves(const shape& sizes, int tried) const {
    return sizes.chunks == 2 || (sizes.chunks > 2 && !rules(tried).lean);
  }
  //! @param out  where the best is written; none: only measures
  constexpr variant_score run(const shape& sizes, const job_table_view& table, int tried,
                              job_sink* out) const {
    if (!serves(sizes, tried)) return {};
    const int room = kept_room::widest(sizes, table);
    scratch<std::int64_t> allowed(sizes.ranks);
    scratch<std::int64_t> kept(sizes.ranks);
    variant_score best;
    std::int64_t shortest = unlimited;
    for (;;) {
      round_pass pass(sizes, table, rules(tried), allowed.data(), nullptr);
      if (!pass.run()) break;
      const variant_score made = score_of(objective, pass.makespan(), pass.span(), room);
      if (!best.fits || made.is_better_than(best)) {
        best = made;
        for (int rank = 0; rank < sizes.ranks; ++rank) kept[rank] = allowed[rank];
      }
      if (pass.most_idle() >= shortest) break;
      shortest = pass.most_idle();
      for (int rank = 0; rank < sizes.ranks; ++rank) allowed[rank] = pass.idle(rank);
    }
    if (out != nullptr && best.fits) round_pass(sizes, table, rules(tried), kept.data(), out).run();
    return best;
  }

 private:
  static constexpr round_rules rules(int tried) {
    const bool first = tried >= lean;
    const int place = first ? tried - lean : tried;
    const int choice = choices - 1 - place % choices;  // all of them made first, as the authors do
    return {.lean = !first && tried >= 2 * choices,
            .first = first,
            .fill_back = choice / 2 == 1,
            .fill_forward = choice % 2 == 1,
            .fill_loss = tried < choices,
            .spare_hop = !first && tried >= 3 * choices};
  }
};

}  // namespace stretto::schedule
