#include "trace_path.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "stretto/plan/measured_path.hpp"
#include "table.hpp"

namespace stretto::tool {

std::vector<critical_job> measured_path(const std::vector<traced>& measured,
                                        const replay_input& scheduled) {
  const std::int64_t origin = jobs_of(measured).start;
  std::map<work_key, job_time> times;
  for (const traced& one : measured)
    if (is_job(one) || is_copy(one.what.kind))
      times[key_of(one.what)] = {one.when.start - origin, one.when.end - origin};
  return critical_path(scheduled, measured_timeline(scheduled.rows, [&](const job& work) {
                         const auto found = times.find(key_of(work));
                         return found == times.end() ? nullptr : &found->second;
                       }));
}

void outline_measured(timeline_picture& picture, const replay_input& scheduled,
                      const std::vector<critical_job>& path) {
  std::vector<int> lanes;  // of each rank's measured jobs
  for (std::size_t lane = 0; lane < picture.lanes.size(); ++lane)
    if (picture.lanes[lane].opens) lanes.push_back(static_cast<int>(lane) + 1);
  for (const critical_job& one : path) {
    const job& work = scheduled.rows.at(one.rank, one.step);
    if (is_compute(work.kind))
      picture.path.push_back({lanes[static_cast<std::size_t>(one.rank)],
                              0,
                              work,
                              {one.when.start / 1000, (one.when.end + 999) / 1000},
                              0});
  }
  const path_shares shares = shares_of(path);
  const auto part = [&](std::int64_t time) {
    return percent(static_cast<double>(time) /
                   static_cast<double>(std::max<std::int64_t>(1, shares.sum())));
  };
  picture.subtitle += "; critical path: jobs " + part(shares.jobs) + ", messages " +
                      part(shares.messages) + ", lost " + part(shares.lost);
}

}  // namespace stretto::tool
