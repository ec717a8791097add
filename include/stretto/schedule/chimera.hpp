#pragma once

#include <limits>
#include <string_view>

#include "stretto/schedule/concept.hpp"

namespace stretto::schedule {

//! Chimera: two replicas of the model laid in opposite directions over the same ranks, half of the
//! micro-batches to each, so that one fills what the other leaves idle at both ends. Bubble
//! (p - 2) max(f, b) for an even m >= p, where 1F1B has (p - 1)(f + b); at most p stages'
//! activations, weights twice. Li and Hoefler 2021, whose units of p micro-batches here run on into
//! one another without the bubbles between them. An even number of ranks and any m.
//!
//! A slot has room for a forward and a backward, in this order. In direction 0, micro-batch j runs
//! the forward of stage s in slot 2 j + s and its backward in slot 2 j + 2 (p - 1) - s; so does the
//! j-th of direction 1. On a rank one direction has the even slots and the other the odd ones.
struct chimera {
  static constexpr std::string_view name = "chimera";

  constexpr placement_kind placed() const { return placement_kind::bidirectional; }
  constexpr verdict supports(const shape& sizes) const { return two_ways_or_refuse(sizes); }
  constexpr int capacity(const shape& sizes) const { return 2 * sizes.microbatches; }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    const int p = sizes.ranks;
    const int ahead = (sizes.microbatches + 1) / 2;  // direction 0 takes the odd one
    const int totals[2] = {ahead, sizes.microbatches - ahead};
    const int firsts[2] = {0, ahead};
    for (int rank = 0; rank < p; ++rank) {
      const int stages[2] = {rank, p - 1 - rank};
      int slots[2][2];  // of the next forward and backward of each direction
      int next[2][2] = {};
      for (int way : {0, 1}) {
        slots[way][0] = stages[way];
        slots[way][1] = 2 * (p - 1) - stages[way];
      }
      for (int left = 2 * sizes.microbatches; left > 0; --left) {
        int way = 0;
        int back = 0;
        int least = never;
        for (int one : {0, 1})
          for (int kind : {0, 1})
            if (next[one][kind] < totals[one] && slots[one][kind] < least)
              least = slots[one][kind], way = one, back = kind;
        out.push(rank, {stages[way], firsts[way] + next[way][back]++, 0,
                        back == 1 ? job_kind::backward : job_kind::forward});
        slots[way][back] += 2;
      }
    }
    return {};
  }

 private:
  static constexpr int never = std::numeric_limits<int>::max();
};

}  // namespace stretto::schedule
