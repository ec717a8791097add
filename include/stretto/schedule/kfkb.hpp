#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/microbatch_groups.hpp"
#include "stretto/schedule/parts/push_in_turn.hpp"

namespace stretto::schedule {

//! k forwards, k backwards: 1F1B of groups of k micro-batches, so that the messages of one lie
//! behind the computation of the others of its group; rank r keeps at most min(m, k (p - r))
//! micro-batches alive. Between 1F1B (k = 1) and fill-drain (k = m), to be chosen by how slow
//! messages are and by what memory there is. Ada-Grouper (Wang et al. 2023), where k divides m;
//! here any k up to m.
struct kfkb {
  static constexpr std::string_view name = "kfkb";
  //! Micro-batches per group, k; 0: 2, where there are two.
  int group = 0;
  remainder_kind remainder = remainder_kind::even;

  constexpr placement_kind placed() const { return placement_kind::looped; }
  constexpr verdict supports(const shape& sizes) const {
    if (const verdict sound = one_chunk_or_refuse(sizes); !sound) return sound;
    if (group < 0) return refuse(fault::unsupported, reason::group_below_one);
    if (group > sizes.microbatches)
      return refuse(fault::unsupported, reason::group_above_microbatches);
    return {};
  }
  constexpr int capacity(const shape& sizes) const { return 2 * sizes.microbatches; }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    const int together = group > 0 ? group : sizes.microbatches > 1 ? 2 : 1;
    const microbatch_groups groups = group_microbatches(sizes, together, remainder);
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      const auto push = [&](job_kind kind) {
        return [&, rank, kind](int k) {
          const int end = groups.begin(k + 1);
          for (int microbatch = groups.begin(k); microbatch < end; ++microbatch)
            out.push(rank, {rank, microbatch, 0, kind});
        };
      };
      const int followers = sizes.ranks - 1 - rank;
      push_in_turn(groups.count(), followers, push(job_kind::forward), push(job_kind::backward));
    }
    return {};
  }
};

}  // namespace stretto::schedule
