// Processor time of jobs: what a job costs, also where ranks share cores.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cpu_time.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/job.hpp"

namespace train {

//! Sums one rank's times by chunk, kind of compute job and slice. Filled by the thread that runs
//! the jobs, read between steps.
class job_clock {
 public:
  job_clock(int chunks, int slices)
      : slices_(static_cast<std::size_t>(slices)),
        entries_(static_cast<std::size_t>(chunks) * stretto::cost_kinds * slices_) {}

  //! Runs `work`, a job or one of its ops, and adds its time.
  //! @param begins  whether the job begins with it
  template <class Work>
  void measure(int chunk, stretto::job_kind kind, int slice, bool begins, Work&& work) {
    const std::int64_t start = thread_cpu_time();
    work();
    entry& to = entries_[index(chunk, kind, slice)];
    to.sum += thread_cpu_time() - start;
    if (begins) ++to.count;
  }
  //! Nanoseconds of one job; 0 where none was run.
  std::int64_t mean(int chunk, stretto::job_kind kind, int slice) const {
    const entry& from = entries_[index(chunk, kind, slice)];
    return from.count == 0 ? 0 : from.sum / from.count;
  }
  //! Nanoseconds of all jobs.
  std::int64_t sum() const {
    std::int64_t all = 0;
    for (const entry& each : entries_) all += each.sum;
    return all;
  }
  void clear() { entries_.assign(entries_.size(), {}); }

 private:
  struct entry {
    std::int64_t sum = 0;
    std::int64_t count = 0;
  };
  std::size_t index(int chunk, stretto::job_kind kind, int slice) const {
    return (static_cast<std::size_t>(chunk) * stretto::cost_kinds +
            static_cast<std::size_t>(kind)) *
               slices_ +
           static_cast<std::size_t>(slice);
  }

  std::size_t slices_;
  std::vector<entry> entries_;
};

}  // namespace train
