// Which workers a process runs.
#pragma once

#include <cstddef>
#include <string>

#include "pipeline/settings.hpp"

namespace train {

//! Workers [first, last).
struct worker_range {
  std::size_t first = 0, last = 0;
  std::size_t count() const { return last - first; }
  bool holds(std::size_t worker) const { return first <= worker && worker < last; }
};

//! Those of a process: equal parts of all, in their order; some have one more.
//! @throws bad_setting when there are fewer workers than processes
inline worker_range share_of(const pipeline_settings& settings, int process) {
  const auto all = config::size(settings.ranks) * config::size(settings.tensor_parallel) *
                   config::size(settings.data_parallel);
  if (settings.between == nullptr) return {0, all};
  const auto processes = config::size(settings.between->processes());
  if (!settings.make_transport || processes > all)
    throw bad_setting("transport", settings.transport,
                      std::to_string(processes) + " processes are more than the " +
                          std::to_string(all) + " workers of the pipeline");
  const auto number = config::size(process);
  return {number * all / processes, (number + 1) * all / processes};
}

}  // namespace train
