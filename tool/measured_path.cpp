#include "measured_path.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>

#include "table.hpp"

namespace stretto::tool {

std::vector<critical_job> measured_path(const measured_trace& trace,
                                        const replay_input& scheduled) {
  std::map<work_key, job_time> times;
  std::int64_t origin = std::numeric_limits<std::int64_t>::max();
  for (const traced& one : trace.last_step()) {
    if (!is_job(one) && !is_copy(one.what.kind)) continue;
    times[key_of(one.what)] = one.when;
    if (is_job(one)) origin = std::min(origin, one.when.start);
  }
  const job_rows& rows = scheduled.rows;
  std::vector<job_time> timeline(static_cast<std::size_t>(rows.ranks) *
                                 static_cast<std::size_t>(rows.stride));
  for (int rank = 0; rank < rows.ranks; ++rank)
    for (int step = 0; step < rows.counts[rank]; ++step)
      if (const auto found = times.find(key_of(rows.at(rank, step))); found != times.end())
        timeline[static_cast<std::size_t>(rank) * static_cast<std::size_t>(rows.stride) +
                 static_cast<std::size_t>(step)] = {found->second.start - origin,
                                                    found->second.end - origin};
  return critical_path(scheduled, timeline);
}

void outline_measured(timeline_picture& picture, const replay_input& scheduled,
                      const std::vector<critical_job>& path) {
  std::vector<int> lanes;  // of each rank's measured jobs
  for (std::size_t lane = 0; lane < picture.lanes.size(); ++lane)
    if (picture.lanes[lane].opens) lanes.push_back(static_cast<int>(lane) + 1);
  std::int64_t jobs = 0;
  std::int64_t between = 0;  // ranks
  std::int64_t within = 0;
  for (const critical_job& one : path) {
    const job& work = scheduled.rows.at(one.rank, one.step);
    jobs += one.when.end - one.when.start;
    (one.messages > 0 ? between : within) += one.waited;
    if (is_compute(work.kind))
      picture.path.push_back({lanes[static_cast<std::size_t>(one.rank)],
                              0,
                              work,
                              {one.when.start / 1000, (one.when.end + 999) / 1000},
                              0});
  }
  const auto part = [&](std::int64_t time) {
    return percent(static_cast<double>(time) /
                   static_cast<double>(std::max<std::int64_t>(1, jobs + between + within)));
  };
  picture.subtitle += "; critical path: jobs " + part(jobs) + ", messages " + part(between) +
                      ", else " + part(within);
}

}  // namespace stretto::tool
