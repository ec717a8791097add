#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"

namespace stretto::schedule {

//! Chimera: two replicas of the model laid in opposite directions over the same ranks, half of the
//! micro-batches to each, every rank with two sequences in turn: what goes one way forwards and the
//! other way backwards. Each sequence is forwards and backwards of p/2 micro-batches by turns; they
//! follow one another without a gap when forward and backward take the same time. Bubble p - 2 of
//! 2 m + p - 2 such jobs, at most p stages' activations, weights twice. Li and Hoefler 2021, by
//! direct concatenation of its units. An even number of ranks and any m.
struct chimera {
  static constexpr std::string_view name = "chimera";

  constexpr placement_kind placed() const { return placement_kind::bidirectional; }
  constexpr verdict supports(const shape& sizes) const { return two_ways_or_refuse(sizes); }
  constexpr int capacity(const shape& sizes) const { return 2 * sizes.microbatches; }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    const int p = sizes.ranks;
    const int half = p / 2;
    const int ahead = (sizes.microbatches + 1) / 2;  // direction 0 takes the odd one
    const int total[2] = {ahead, sizes.microbatches - ahead};
    const int steps = (ahead + half - 1) / half * p;  // of a sequence
    for (int rank = 0; rank < p; ++rank) {
      const int stages[2] = {rank, p - 1 - rank};
      const int firsts[2] = {0, ahead};
      // Step k of the sequence whose forwards go `way`.
      const auto push = [&](int way, int k) {
        const int index = k / p * half + k % half;
        const bool returns = k % p >= half;
        const int direction = returns ? 1 - way : way;
        if (index < total[direction])
          out.push(rank, {stages[direction], firsts[direction] + index, 0,
                          returns ? job_kind::backward : job_kind::forward});
      };
      // A slot is a job's time; sequence `way` has the slots 2 k after its stage's number.
      int next[2] = {};
      while (next[0] < steps || next[1] < steps) {
        const int way = next[1] == steps || (next[0] < steps &&
                                             stages[0] + 2 * next[0] < stages[1] + 2 * next[1])
                            ? 0
                            : 1;
        push(way, next[way]++);
      }
    }
    return {};
  }
};

}  // namespace stretto::schedule
