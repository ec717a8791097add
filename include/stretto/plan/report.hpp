#pragma once

#include <cstdint>
#include <span>

#include "stretto/base/scratch.hpp"
#include "stretto/model/replay.hpp"

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

//! When a job runs, in the units of the costs.
struct job_time {
  std::int64_t start = 0;
  std::int64_t end = 0;

  constexpr bool operator==(const job_time&) const = default;
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
  std::int64_t makespan = 0;  //!< from 0 to the end of the last job of any rank
  fraction bubble{};          //!< the largest idle / makespan of any rank

  constexpr bool operator==(const report&) const = default;
};

//! The memory of one rank while its list runs: a forward's change counts from its start, every
//! other job's from its end, and a job may need more in between. The halves of a pair are in use
//! together.
class memory_meter {
 public:
  constexpr memory_meter() = default;
  constexpr explicit memory_meter(std::int64_t base) : level_(base), peak_(base) {}

  constexpr std::int64_t level() const { return level_; }  //!< after the last job
  constexpr std::int64_t peak() const { return peak_; }    //!< so far

  //! One job, or the first half of a pair.
  constexpr void start(job_kind kind, const job_cost& cost) {
    if (kind == job_kind::forward) {
      within_ += cost.peak > cost.change ? cost.peak : cost.change;
      before_ += cost.change;
    } else {
      within_ += cost.peak > 0 ? cost.peak : 0;
      after_ += cost.change;
    }
  }
  //! The end of what was started.
  //! @return the most in use while it ran
  constexpr std::int64_t finish() {
    const std::int64_t most = level_ + (within_ > before_ ? within_ : before_);
    raise(most);
    level_ += before_ + after_;
    raise(level_);
    within_ = before_ = after_ = 0;
    return most;
  }

 private:
  constexpr void raise(std::int64_t level) {
    if (level > peak_) peak_ = level;
  }
  std::int64_t level_ = 0;
  std::int64_t peak_ = 0;
  std::int64_t within_ = 0;
  std::int64_t before_ = 0;
  std::int64_t after_ = 0;
};

namespace detail {

//! Adds up what a replay runs. Jobs that it passes over (messages in a replay without them) take no
//! time and stand where the job before them ended.
struct report_observer : replay_observer {
  const replay_input& in;
  std::span<rank_report> ranks;
  std::span<job_time> timeline;
  scratch<memory_meter> memory;
  scratch<std::int32_t> told;       // steps of the rank that the timeline already holds
  scratch<std::int64_t> rank_ends;  // of the rank's last job
  std::int64_t makespan = 0;

  constexpr report_observer(const replay_input& in_, std::span<rank_report> ranks_,
                            std::span<job_time> timeline_)
      : in(in_),
        ranks(ranks_),
        timeline(timeline_),
        memory(in_.rows.ranks),
        told(in_.rows.ranks),
        rank_ends(in_.rows.ranks) {
    for (int rank = 0; rank < in.rows.ranks; ++rank)
      memory[rank] = memory_meter(in.costs.base_of(rank));
  }

  constexpr void ran(int rank, int step, const job& work, std::int64_t start, std::int64_t end) {
    pass_over(rank, step);
    put(rank, {start, end});
    rank_ends[rank] = end;
    if (end > makespan) makespan = end;
    if (!is_compute(work.kind)) return;
    memory[rank].start(work.kind, in.costs.at(rank, in.where.chunk_of(work), work.kind));
    if (work.paired && step + 1 < in.rows.counts[rank]) return;  // the second half ends the node
    memory[rank].finish();
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

//! Replays the lists under their costs and adds up. Messages, UNSHARD and the like take no time
//! beyond the hop between ranks that the costs give.
//! @param ranks    one entry per rank, written
//! @param timeline empty, or one entry per place of the lists: job `step` of `rank` is at
//!                 rank * rows.stride + step
//! @return `answer` is fault::capacity when the storage is too small, else what the replay says
constexpr report measure(const replay_input& input, std::span<rank_report> ranks,
                         std::span<job_time> timeline = {}) {
  const auto count = static_cast<std::size_t>(input.rows.ranks);
  const std::size_t places = count * static_cast<std::size_t>(input.rows.stride);
  if (ranks.size() < count || (!timeline.empty() && timeline.size() < places))
    return {.answer = refuse(fault::capacity, reason::buffer_full)};
  for (std::size_t rank = 0; rank < count; ++rank) ranks[rank] = {};
  detail::report_observer watch(input, ranks, timeline);
  report made{.answer = replay(input, watch)};
  if (!made.answer.ok()) return made;

  made.makespan = watch.makespan;
  std::int64_t most_idle = 0;
  for (int rank = 0; rank < input.rows.ranks; ++rank) {
    rank_report& of = ranks[static_cast<std::size_t>(rank)];
    watch.pass_over(rank, input.rows.counts[rank]);
    of.idle = made.makespan - of.busy;
    of.peak = watch.memory[rank].peak();
    if (of.idle > most_idle) most_idle = of.idle;
  }
  if (made.makespan > 0) made.bubble = {most_idle, made.makespan};
  return made;
}

}  // namespace stretto
