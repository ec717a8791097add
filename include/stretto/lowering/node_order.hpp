#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/node_queue.hpp"
#include "stretto/model/replay.hpp"

namespace stretto::lowering {

namespace detail {

//! Notes them of every job; of a copy or a gather, those of the job before it, or the beginning:
//! whatever takes so long, messages behind it need not wait.
struct end_times : replay_observer {
  job_end* ends;
  int stride;
  std::int64_t turn = 0;

  constexpr end_times(job_end* ends_, int stride_) : ends(ends_), stride(stride_) {}
  constexpr void ran(int rank, int step, const job& work, std::int64_t, std::int64_t end) {
    job_end& here = ends[static_cast<std::int64_t>(rank) * stride + step];
    if (work.kind > job_kind::recompute)
      here = step > 0 ? *(&here - 1) : job_end{};
    else here.time = end, here.turn = turn++;
  }
};

}  // namespace detail

//! Puts the nodes of compute-only lists (a pair is one) in the order in which they end under the
//! given costs; see node_queue.
//! @param ranks  filled with the rank of each, which runs its own in the order of its list; room
//!               for all jobs
//! @param count  how many nodes there are
//! @return what the replay says of the lists: they are live, or which job waits for ever
constexpr verdict order_nodes(const replay_input& compute, std::int32_t* ranks,
                              std::int64_t& count) {
  const job_rows& rows = compute.rows;
  scratch<job_end> ends(std::int64_t{rows.ranks} * rows.stride);
  detail::end_times watch(ends.data(), rows.stride);
  const verdict found = replay(compute, watch);
  count = 0;
  if (!found.ok()) return found;
  count = node_queue(rows, ends.data()).write(ranks);
  return found;
}

}  // namespace stretto::lowering
