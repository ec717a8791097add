// The last step seen three ways: as predicted, as replayed from measured times, as it was.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/pipeline.hpp"
#include "stretto/executor/trace.hpp"
#include "stretto/plan/measured_path.hpp"
#include "stretto/plan/picture.hpp"
#include "stretto/plan/report.hpp"

namespace train {

//! When every rank was busy.
struct step_timeline {
  stretto::timeline_picture picture;
  std::vector<double> idle;  //!< of each rank, as a fraction of the step
  double bubble = 0;         //!< the largest
  double drawn_bubble = 0;   //!< of the step in the picture
  //! Of the critical paths of all steps together, the last of which is outlined in the picture.
  stretto::path_shares critical{};
};

//! Replays the training plan under a job table.
step_timeline replay(const pipeline& from, const stretto::job_table& costs);

using trace_records = std::span<const stretto::executor::trace_record>;

//! Reads the last traced step, from the first job's start to the last one's end, in nanoseconds;
//! `bubble` and `idle` are means over all traced steps, `critical` their sum.
//! @param trace      of all ranks, in the order of an engine's
//! @param one_clock  false: times of different ranks have nothing to do with one another. Then each
//!                   rank's step is from its first instruction's start to its last one's end, and
//!                   there is no picture, nor a critical path.
//! @return nothing when no step was traced
std::optional<step_timeline> measured(const pipeline& from, trace_records trace,
                                      bool one_clock = true);

//! Sums over data-parallel replicas or over the shards of a stage, from when all of them are at it:
//! that one waits for another is no part of it.
struct sum_times {
  double milliseconds = 0;  //!< a step and worker
  double in_time = 0;  //!< what fraction lies before the worker's last job ends: the rest comes
                       //!< after all that could hide it there
  double hidden = 0;        //!< what fraction lies beside jobs of the worker
};

enum class sums_over { replicas, shards };

//! Means over all traced steps and all workers.
//! @param trace  of all ranks, by one clock
//! @return nothing when no step was traced, or there is nothing to sum
std::optional<sum_times> measured_sums(const pipeline& from, trace_records trace, sums_over over);

}  // namespace train
