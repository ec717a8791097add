#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <doctest/doctest.h>

#include "stretto/check/all.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/plan/report.hpp"

//! What a schedule makes of its costs, by the replay, which knows nothing of how it was found.
namespace support {

struct measured_order {
  bool fits = false;          //!< it was emitted, and keeps within the limits
  std::int64_t makespan = 0;  //!< units of time
  std::int64_t span = 0;      //!< longest time from a rank's first job to its last one's end
  std::int64_t peak = 0;      //!< most memory that any rank keeps
};

//! Of lists that come to an end.
inline measured_order measure_lists(const stretto::replay_input& input) {
  const int ranks_of = input.where.ranks;
  std::vector<stretto::rank_report> ranks(static_cast<std::size_t>(ranks_of));
  const int stride = input.rows.stride;
  std::vector<stretto::job_time> times(static_cast<std::size_t>(ranks_of * stride));
  measured_order made{.fits = stretto::check::bounded(input).ok()};
  made.makespan = stretto::measure(input, ranks, times).makespan;
  for (int rank = 0; rank < ranks_of; ++rank) {
    const auto first = static_cast<std::size_t>(rank * stride);
    const auto last = first + static_cast<std::size_t>(input.rows.counts[rank] - 1);
    made.span = std::max(made.span, times[last].end - times[first].start);
    made.peak = std::max(made.peak, ranks[static_cast<std::size_t>(rank)].peak);
  }
  return made;
}

//! Of what `schedule` emits, which must pass every rule; 0 where it emits nothing.
template <class Schedule>
measured_order measure_order(const Schedule& schedule, const stretto::shape& sizes,
                             const stretto::job_table_view& table) {
  stretto::job_lists lists(sizes.ranks, schedule.capacity(sizes));
  stretto::job_sink out = lists.sink();
  if (!schedule.emit(sizes, table, out)) return {};
  const stretto::replay_input input{.rows = lists.rows(),
                                    .where = stretto::place(schedule.placed(), sizes),
                                    .microbatches = sizes.microbatches,
                                    .slices = sizes.slices,
                                    .costs = table};
  REQUIRE(stretto::check::schedule(input, stretto::check::lists_of::training).ok());
  return measure_lists(input);
}

}  // namespace support
