#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "stretto/base/scratch.hpp"
#include "stretto/model/memory_curve.hpp"
#include "stretto/model/replay.hpp"
#include "stretto/plan/gradient_sums.hpp"
#include "stretto/plan/job_time.hpp"

namespace stretto {

//! An exact, unreduced fraction; the denominator is positive.
struct fraction {
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;

  constexpr double value() const {
    return static_cast<double>(numerator) / static_cast<double>(denominator);
  }
  constexpr bool operator==(const fraction&) const = default;
};

//! What one rank does in a step.
struct rank_report {
  std::int64_t busy = 0;  //!< time in jobs
  std::int64_t idle = 0;  //!< makespan - busy
  std::int64_t peak = 0;  //!< most memory in use, the rank's base included

  constexpr bool operator==(const rank_report&) const = default;
};

//! What a step costs.
struct report {
  verdict answer{};           //!< of the replay; the rest means something when it is ok
  std::int64_t makespan = 0;  //!< from 0 to the end of the last job (or sum) of any rank
  std::int64_t span = 0;      //!< from the start of a rank's first job to its last end; the longest
  std::int64_t jobs_end = 0;  //!< of the last job of any rank: what is left of the makespan is sums
  fraction bubble{};          //!< the largest idle / makespan of any rank
  //! The same of the span: what of it the rank with the least work does not compute. Where ranks
  //! have equal work, the bubble rate of *Zero Bubble Pipeline Parallelism, Qi et al. 2023*.
  fraction span_bubble{};

  constexpr bool operator==(const report&) const = default;
};

namespace detail {

//! Adds up what a replay runs. Jobs that it passes over (messages in a replay without them) take no
//! time and stand where the job before them ended.
struct report_observer : replay_observer {
  const replay_input& in;
  std::span<rank_report> ranks;
  std::span<job_time> timeline;
  // References: a class that owns scratch is no literal type for nvcc.
  scratch<std::int32_t>& told;         // steps of the rank that the timeline already holds
  scratch<std::int64_t>& rank_starts;  // of the rank's first job; below 0: not yet
  scratch<std::int64_t>& rank_ends;    // of the rank's last job
  gradient_sums& sums;
  std::int64_t makespan = 0;
  std::int64_t span = 0;

  constexpr report_observer(const replay_input& in_, std::span<rank_report> ranks_,
                            std::span<job_time> timeline_, scratch<std::int32_t>& told_,
                            scratch<std::int64_t>& rank_starts_, scratch<std::int64_t>& rank_ends_,
                            gradient_sums& sums_)
      : in(in_),
        ranks(ranks_),
        timeline(timeline_),
        told(told_),
        rank_starts(rank_starts_),
        rank_ends(rank_ends_),
        sums(sums_) {}

  constexpr void ran(int rank, int step, const job& work, std::int64_t start, std::int64_t end) {
    pass_over(rank, step);
    put(rank, {start, end});
    if (end > makespan) makespan = end;
    if (is_copy(work.kind) || work.kind == job_kind::unshard) return;  // beside the jobs
    rank_ends[rank] = end;
    if (work.kind == job_kind::reduce_grad) sums.add(rank, step, work, end);
    if (!is_compute(work.kind)) return;
    if (rank_starts[rank] < 0) rank_starts[rank] = start;
    if (end - rank_starts[rank] > span) span = end - rank_starts[rank];
    if (work.paired && step + 1 < in.rows.counts[rank]) return;  // the second half ends the node
    ranks[static_cast<std::size_t>(rank)].busy += end - start;
  }
  constexpr void pass_over(int rank, int step) {
    while (told[rank] < step) put(rank, {rank_ends[rank], rank_ends[rank]});
  }
  constexpr void put(int rank, const job_time& when) {
    const std::int64_t at = static_cast<std::int64_t>(rank) * in.rows.stride + told[rank]++;
    if (!timeline.empty()) timeline[static_cast<std::size_t>(at)] = when;
  }
};

}  // namespace detail

//! Replays the lists under their costs and adds up. Messages take no time beyond the hops that
//! the costs give, one after another where links are serial. Sums of gradients (REDUCE_GRAD) follow
//! one another beside the jobs of their rank, each from where it stands in the list on; where two
//! ranks have a stage, of bidirectional placements, theirs is one and begins when both have come to
//! it. (Of lists with groups each is its group's.) No job waits for them, but the step's end does.
//! @param input    its costs fit (stretto::costs_fit), or sums leave their range
//! @param ranks    one entry per rank, written
//! @param timeline empty, or one entry per place of the lists: job `step` of `rank` is at
//!                 rank * rows.stride + step
//! @return `answer` is fault::capacity when the storage is too small, fault::incomplete for other
//!         ranks than the placement's or a job without an entry in the job table, else what the
//!         replay says
constexpr report measure(const replay_input& input, std::span<rank_report> ranks,
                         std::span<job_time> timeline = {}) {
  const auto count = static_cast<std::size_t>(input.rows.ranks);
  const std::size_t places = count * static_cast<std::size_t>(input.rows.stride);
  if (ranks.size() < count || (!timeline.empty() && timeline.size() < places))
    return {.answer = refuse(fault::capacity, reason::buffer_full)};
  if (input.where.ranks != input.rows.ranks)
    return {.answer = refuse(fault::incomplete, reason::ranks_differ)};
  std::int64_t reductions = 0;
  bool any_takes_time = false;
  for (int rank = 0; rank < input.rows.ranks; ++rank) {
    memory_curve memory(input, rank);
    for (int step = 0; step < input.rows.counts[rank];) {
      const int jobs = memory.run(step);
      if (jobs == 0)
        return {.answer = refuse(fault::incomplete, reason::out_of_range, rank, step,
                                 input.rows.at(rank, step))};
      step += jobs;
    }
    ranks[static_cast<std::size_t>(rank)] = {.peak = memory.highest()};
    for (int step = 0; step < input.rows.counts[rank]; ++step) {
      const job& work = input.rows.at(rank, step);
      if (work.kind != job_kind::reduce_grad) continue;
      const std::int64_t time = detail::reduction_time(input, rank, work);
      if (time < 0)
        return {.answer = refuse(fault::incomplete, reason::out_of_range, rank, step, work)};
      ++reductions;
      any_takes_time = any_takes_time || time > 0;
    }
  }
  scratch<std::int32_t> told(input.rows.ranks);
  scratch<std::int64_t> rank_starts(input.rows.ranks);
  scratch<std::int64_t> rank_ends(input.rows.ranks);
  for (int rank = 0; rank < input.rows.ranks; ++rank) rank_starts[rank] = -1;
  detail::gradient_sums sums(input, any_takes_time ? reductions : 0);
  detail::report_observer watch(input, ranks, timeline, told, rank_starts, rank_ends, sums);
  report made{.answer = replay(input, watch)};
  if (!made.answer.ok()) return made;

  made.makespan = made.jobs_end = watch.makespan;
  made.span = watch.span;
  for (int rank = 0; rank < input.rows.ranks; ++rank)
    watch.pass_over(rank, input.rows.counts[rank]);
  if (sums.any()) {
    scratch<std::int64_t> ends(input.rows.ranks);
    sums.run(ends, timeline);
    for (int rank = 0; rank < input.rows.ranks; ++rank) {
      made.makespan = std::max(made.makespan, ends[rank]);
      if (ends[rank] > 0) made.span = std::max(made.span, ends[rank] - rank_starts[rank]);
    }
  }
  std::int64_t most_idle = 0;
  for (int rank = 0; rank < input.rows.ranks; ++rank) {
    rank_report& of = ranks[static_cast<std::size_t>(rank)];
    of.idle = made.makespan - of.busy;
    if (of.idle > most_idle) most_idle = of.idle;
  }
  if (made.makespan > 0) made.bubble = {most_idle, made.makespan};
  if (made.span > 0)
    made.span_bubble = {std::max(std::int64_t{0}, made.span - (made.makespan - most_idle)),
                        made.span};
  return made;
}

}  // namespace stretto
