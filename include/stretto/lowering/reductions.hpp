#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>

#include "stretto/base/scratch.hpp"
#include "stretto/model/replay_input.hpp"

namespace stretto::lowering {

//! Puts sums over data-parallel replicas into lists with messages. `reduce_grad` (the stage writes
//! its gradients) and the collective of every such group stand right behind the last job that adds
//! to these gradients, and behind what that job sends: so the sum runs beside what is left of the
//! step. (Where no job does, because no micro-batch goes that way, they stand behind the rank's
//! last.) All replicas of a rank have one list, so that they meet in the same order, and wait for
//! nobody else.
//! @param lists  with room for two entries a group
constexpr void add_reductions(job_sink& lists, std::span<const rank_group> groups) {
  scratch<std::int32_t> places(static_cast<std::int64_t>(groups.size()));
  std::int32_t* const place = places.data();  // entries of the list before the reduction
  for (int rank = 0; rank < lists.ranks; ++rank) {
    job* const list = lists.items + static_cast<std::int64_t>(rank) * lists.stride;
    std::int32_t& count = lists.counts[rank];
    int held = 0;
    for (std::size_t group = 0; group < groups.size(); ++group) {
      place[group] = 0;
      if (!groups[group].data_parallel || !groups[group].holds(rank)) continue;
      std::int32_t last = 0;
      for (std::int32_t at = 0; at < count; ++at) {
        const job& work = list[at];
        if (work.kind > job_kind::reload) continue;
        last = at + 1;
        if (work.stage == groups[group].stage &&
            (work.kind == job_kind::backward || work.kind == job_kind::backward_weight))
          place[group] = last;
      }
      std::int32_t& behind = place[group];
      if (behind == 0) behind = last;
      if (behind == 0) continue;  // an empty list
      if (list[behind - 1].paired) ++behind;
      while (behind < count && is_send(list[behind].kind)) ++behind;
      ++held;
    }
    if (count + 2 * held > lists.stride)
      throw std::length_error("stretto: lists have no room for reductions");
    count += 2 * held;
    for (std::int32_t to = count; held > 0;) {
      const std::int32_t from = to - 2 * held;
      for (std::size_t group = groups.size(); group-- > 0;) {
        if (place[group] == 0 || place[group] != from) continue;
        const auto number = static_cast<std::int32_t>(group);
        list[--to] = {groups[group].stage, number, 0, job_kind::all_reduce, false};
        list[--to] = {groups[group].stage, number, 0, job_kind::reduce_grad, false};
        --held;
      }
      if (held > 0) --to, list[to] = list[to - 2 * held];
    }
  }
}

}  // namespace stretto::lowering
