#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/job.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/replay_input.hpp"

namespace stretto {

//! The memory of one rank down its list, in the unit of the job table: by prefix sums, because a
//! rank's jobs run in the order of its list whatever the times, and what is copied to the host is
//! there until its offload's place in the list, and from its reload's; weights that are gathered,
//! from their UNSHARD's to their RESHARD's. Messages, reductions and updates cost nothing here;
//! their buffers are the plan's.
class memory_curve {
 public:
  constexpr memory_curve(const replay_input& input, int rank)
      : in_(input),
        where_(input.where),
        stages_(where_.stages()),
        chunks_(input.costs.serves(rank + 1, 0, input.microbatches, input.slices)
                    ? input.costs.chunks
                    : 0),
        costs_(chunks_ > 0 ? &input.costs.at(rank, 0, job_kind::forward) : nullptr),
        list_(input.rows.items + std::int64_t{rank} * input.rows.stride),
        rank_(rank),
        count_(input.rows.counts[rank]),
        level_(input.costs.base_of(rank)),
        highest_(level_),
        again_(recomputes()
                   ? std::int64_t{input.where.stages()} * input.microbatches * input.slices
                   : 0) {
    for (int step = 0; again_.size() > 0 && step < input.rows.counts[rank]; ++step) {
      const job& work = input.rows.at(rank, step);
      if (work.kind == job_kind::recompute && inside(work)) again_[cell(work)] = true;
    }
  }
  constexpr ~memory_curve() = default;  // nvcc needs it written

  //! Runs the job at `step` (and, if that one is paired, the job after it).
  //! @return how many jobs that were; 0 when one is out of range of the placement or the table.
  constexpr int run(int step) {
    job work = list_[step];  // a copy is read faster by a compiler
    std::int64_t used = level_;
    if (!add(work, used)) return 0;
    int count = 1;
    if (work.paired && step + 1 < count_) {
      // Both halves run at once: what each takes on top of the level is there together.
      if (!add(list_[step + 1], used)) return 0;
      count = 2;
    }
    // A job that takes memory at its end leaves more than it used.
    if (level_ > used) used = level_;
    used_ = used;
    if (used > highest_) highest_ = used;
    return count;
  }

  constexpr std::int64_t level() const { return level_; }      //!< after the last job
  constexpr std::int64_t used() const { return used_; }        //!< the most during that job
  constexpr std::int64_t highest() const { return highest_; }  //!< the most so far

 private:
  constexpr bool inside(const job& work) const {
    return work.stage >= 0 && work.stage < in_.where.stages() && work.microbatch >= 0 &&
           work.microbatch < in_.microbatches && work.slice >= 0 && work.slice < in_.slices;
  }
  constexpr std::int64_t cell(const job& work) const {
    return (std::int64_t{work.stage} * in_.microbatches + work.microbatch) * in_.slices +
           work.slice;
  }
  constexpr bool recomputes() const {
    for (const job* work = list_; work < list_ + count_; ++work)
      if (work->kind == job_kind::recompute) return true;
    return false;
  }

  constexpr bool add(const job& work, std::int64_t& used) {
    if (!has_cost(work.kind)) return !is_gather(work.kind) || gather(work);
    if (work.stage < 0 || work.stage >= stages_) return false;
    const int chunk = where_.chunk_of(work.stage, work.microbatch);
    if (chunk >= chunks_) return false;
    const job_cost* costs = costs_ + chunk * cost_kinds;
    if (!in_.costs.classes.empty()) {
      if (!inside(work)) return false;
      costs += in_.costs.class_offset(work);
    }
    job_cost cost = costs[static_cast<int>(work.kind)];
    std::int64_t change = cost.change;
    const bool ahead = work.kind == job_kind::forward;
    if (ahead && again_.size() > 0 && inside(work) && again_[cell(work)])
      change -= costs[static_cast<int>(job_kind::recompute)].change;
    // While it runs, a forward has all that it would keep, unless its peak says otherwise.
    const bool takes = ahead || work.kind == job_kind::recompute || work.kind == job_kind::reload;
    const std::int64_t at_start = !takes ? 0 : cost.peak > 0 ? change : cost.change;
    used += cost.peak > at_start ? cost.peak : at_start;
    level_ += change;
    return true;
  }

  constexpr bool gather(const job& work) {
    const int chunk = where_.chunk_on(rank_, work.stage);
    if (chunk < 0 || chunk >= chunks_) return false;
    const std::int64_t room =
        costs_[chunk * cost_kinds + static_cast<int>(job_kind::unshard)].change;
    level_ += work.kind == job_kind::unshard ? room : -room;
    return true;
  }

  const replay_input& in_;
  placement where_;
  int stages_;
  int chunks_;             // that have costs
  const job_cost* costs_;  // of the rank
  const job* list_;
  int rank_;
  std::int32_t count_;
  std::int64_t level_;
  std::int64_t highest_;
  std::int64_t used_ = 0;
  scratch<bool> again_;  // forwards that run a second time; empty: none
};

}  // namespace stretto
