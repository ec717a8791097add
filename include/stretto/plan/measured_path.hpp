#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/model/rows.hpp"
#include "stretto/plan/critical_path.hpp"
#include "stretto/plan/job_time.hpp"

namespace stretto {

//! The timeline of a step that was measured, as `critical_path` takes it.
//! @param time_of  (const job&): a pointer to when it ran; null, for what was not measured, stands
//!                 at 0
template <class TimeOf>
std::vector<job_time> measured_timeline(const job_rows& rows, TimeOf&& time_of) {
  std::vector<job_time> made(static_cast<std::size_t>(rows.ranks) *
                             static_cast<std::size_t>(rows.stride));
  for (int rank = 0; rank < rows.ranks; ++rank)
    for (int step = 0; step < rows.counts[rank]; ++step)
      if (const job_time* const when = time_of(rows.at(rank, step)); when != nullptr)
        made[static_cast<std::size_t>(std::int64_t{rank} * rows.stride + step)] = *when;
  return made;
}

//! What a critical path is made of, in the units of its timeline.
struct path_shares {
  std::int64_t jobs = 0;
  std::int64_t messages = 0;  //!< from a job's end to one's start on another rank
  std::int64_t lost = 0;      //!< before one of a rank's own, behind the one in front of it or the
                              //!< step's beginning, which only a measured step has

  constexpr std::int64_t sum() const { return jobs + messages + lost; }
  constexpr bool operator==(const path_shares&) const = default;
};
inline path_shares shares_of(std::span<const critical_job> path) {
  path_shares made;
  for (const critical_job& one : path) {
    made.jobs += one.when.end - one.when.start;
    (one.messages > 0 ? made.messages : made.lost) += one.waited;
  }
  return made;
}

}  // namespace stretto
