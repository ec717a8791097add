#pragma once

#include <cstdint>

#include "stretto/model/replay.hpp"

namespace stretto::lowering {

//! When a job ends, and when the replay ran it.
struct job_end {
  std::int64_t time;
  std::int64_t turn;
};

namespace detail {

//! Notes them of every job; of a copy, those of the job before it: whatever takes so long, messages
//! behind it need not wait.
struct end_times : replay_observer {
  job_end* ends;
  int stride;
  std::int64_t turn = 0;

  constexpr end_times(job_end* ends_, int stride_) : ends(ends_), stride(stride_) {}
  constexpr void ran(int rank, int step, const job& work, std::int64_t, std::int64_t end) {
    job_end& here = ends[static_cast<std::int64_t>(rank) * stride + step];
    if (work.kind > job_kind::recompute) here = *(&here - 1);
    else here.time = end, here.turn = turn++;
  }
};

}  // namespace detail

//! When the jobs of compute-only lists end under the given costs.
//! @param ends  filled; job i of rank r is ends[r * rows.stride + i]
//! @return what the replay says of the lists: they are live, or which job waits for ever
constexpr verdict note_ends(const replay_input& compute, job_end* ends) {
  detail::end_times watch(ends, compute.rows.stride);
  return replay(compute, watch);
}

}  // namespace stretto::lowering
