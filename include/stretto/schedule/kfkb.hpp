#pragma once

#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/microbatch_groups.hpp"

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
    const int count = groups.count();
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      const auto push = [&](job_kind kind, int number) {
        const int end = groups.begin(number + 1);
        for (int microbatch = groups.begin(number); microbatch < end; ++microbatch)
          out.push(rank, {rank, microbatch, 0, kind});
      };
      const int followers = sizes.ranks - 1 - rank;
      const int warmup = followers < count ? followers : count;
      // 1. Warm-up: the forwards of w = min(p - 1 - r, groups) groups.
      for (int k = 0; k < warmup; ++k) push(job_kind::forward, k);
      // 2. Steady: a group's forwards, and the backwards of w groups before.
      for (int k = 0; k < count - warmup; ++k) {
        push(job_kind::forward, warmup + k);
        push(job_kind::backward, k);
      }
      // 3. Cool-down: the backwards of the w groups that are left.
      for (int k = count - warmup; k < count; ++k) push(job_kind::backward, k);
    }
    return {};
  }
};

}  // namespace stretto::schedule
