#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/plan/picture.hpp"

namespace stretto::tool {

//! A slice of a trace: a job, a message, or what else an instruction does, or an op of it.
struct traced {
  int rank = 0;
  int stream = 0;
  job what{};
  bool computes = false;
  std::int64_t step = 0;
  job_time when{};  //!< nanoseconds from the trace's beginning
};

//! Not a sum between the ops of a job.
inline bool is_job(const traced& one) {
  return one.computes && is_compute(one.what.kind);
}

//! F, B or I, W, R or a message of a stage and micro-batch: of these there is one each.
using work_key = std::tuple<job_kind, int, int, int>;
inline work_key key_of(const job& work) {
  const job_kind kind = work.kind == job_kind::backward ? job_kind::backward_input : work.kind;
  return {kind, work.stage, work.microbatch, work.slice};
}

//! 0 where there are none. @param times  are put in another order
std::int64_t median(std::vector<std::int64_t>& times);

//! What the executor measured, as write_chrome_trace wrote it.
class measured_trace {
 public:
  //! @param ranks   of the pipeline; 0: as many as there are that do not share each other's jobs
  //! @param worker  where several share a rank's jobs, whose are read (the option --worker)
  //! @param stages  of the pipeline: no job is of another
  //! @throws bad_input naming the option, the file, the event and the rule
  measured_trace(const std::string& option, const std::string& path, int ranks, int worker = 0,
                 int stages = std::numeric_limits<int>::max());

  //! The last step, jobs and messages in the order of their starts; ops of a job are joined.
  std::vector<traced> last_step() const;
  std::int64_t last() const { return steps_.back(); }
  //! The numbers of the steps, ascending.
  const std::vector<std::int64_t>& steps() const { return steps_; }
  //! Jobs and messages of one of them, as of the last.
  std::vector<traced> step(std::int64_t number) const;
  int ranks() const { return static_cast<int>(streams_.size()); }
  std::int64_t workers() const { return workers_; }  //!< of each
  int worker() const { return worker_; }             //!< which of them was read
  //! @throws bad_input that names the file
  [[noreturn]] void fail(const std::string& words) const;
  const std::string& stream_name(int rank, int stream) const;

  //! What each kind of job or copy takes on each rank's chunk: the medians of all steps, in
  //! nanoseconds; 0 where there is none.
  job_table medians(const placement& where) const;

 private:
  std::string option_, path_;
  std::vector<traced> events_;  // by step
  std::vector<std::int64_t> steps_;
  std::int64_t workers_ = 1;
  int worker_;
  std::vector<std::vector<std::string>> streams_;  // by rank
};

//! From the first job's start to the last one's end of a step, in nanoseconds; both 0 if it has
//! none.
job_time jobs_of(const std::vector<traced>& step);
//! How long that is.
inline std::int64_t makespan_of(const std::vector<traced>& step) {
  return jobs_of(step).end - jobs_of(step).start;
}

//! Draws the measured step below the predicted one, rank by rank: jobs, then a narrow lane for each
//! stream beside them, on one axis in microseconds.
//! @param predicted  in microseconds; its subtitle stays
timeline_picture beside_measured(const timeline_picture& predicted, const measured_trace& trace,
                                 const placement& where);

}  // namespace stretto::tool
