#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/link_clocks.hpp"
#include "stretto/schedule/concept.hpp"

namespace stretto::schedule {

//! One rank's costs and state in a pass of zb_auto; arrays are for F, I, W.
struct zb_rank {
  std::int64_t time[3];
  std::int64_t change[3];
  std::int64_t need[3];  //!< most memory in use above the level at the job's start
  std::int64_t limit;    //!< of memory
  std::int64_t reserve;  //!< that a forward must leave, so that its backward can follow
  std::int64_t end;      //!< of the last job
  std::int64_t start;    //!< of the first
  std::int64_t bubble;   //!< idle time after the first forward
  std::int64_t memory;   //!< in use
  std::int32_t done[3];  //!< jobs so far
  std::int32_t more;     //!< forwards wanted now
};

//! Where a pass of zb_auto stands: what has run, when, and in which memory. That is given by the
//! caller: `ranks` one entry a rank, `there` 2 p m; without `out` nothing is written.
class zb_state {
 public:
  static constexpr int forward = 0;
  static constexpr int input = 1;
  static constexpr int weight = 2;

  constexpr zb_state(const shape& sizes, const job_table_view& table, scratch<zb_rank>& ranks,
                     scratch<std::int64_t>& there, job_sink* out)
      : ranks_(ranks),
        there_(there),
        out_(out),
        count_(sizes.microbatches),
        stride_(sizes.ranks),
        last_(sizes.ranks - 1),
        links_(table, sizes.ranks, 1) {
    constexpr job_kind kinds[] = {job_kind::forward, job_kind::backward_input,
                                  job_kind::backward_weight};
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      zb_rank& at = ranks_[rank];
      at = {};
      for (int kind = 0; kind < 3; ++kind) {
        const job_cost& cost = table.at(rank, 0, kinds[kind]);
        at.time[kind] = cost.time;
        at.change[kind] = cost.change;
        at.need[kind] = cost.peak > cost.change ? cost.peak : cost.change;
      }
      const std::int64_t after = at.change[input] + at.need[weight];
      at.reserve = at.change[forward] + (at.need[input] > after ? at.need[input] : after);
      if (at.reserve < at.need[forward]) at.reserve = at.need[forward];
      at.memory = table.base_of(rank);
      at.limit = table.limit_of(rank);
    }
  }

  //! Whether a backward for the weights could run.
  static constexpr bool pending(const zb_rank& at) { return at.done[weight] < at.done[input]; }

  //! When the input of the rank's next job of the kind is there.
  constexpr std::int64_t arrival(int rank, int kind) const {
    if (kind == forward)
      return rank == 0 ? 0 : there_[ranks_[rank].done[forward] * stride_ + rank - 1];
    if (rank == last_) return 0;
    return there_[(count_ + ranks_[rank].done[input]) * stride_ + rank + 1];
  }

  //! Appends the rank's next job of the kind.
  constexpr void put(int rank, int kind) {
    zb_rank& at = ranks_[rank];
    if (kind != weight) {
      const std::int64_t input_at = arrival(rank, kind);
      if (input_at > at.end) {
        if (at.done[forward] > 0 && (at.bubble += input_at - at.end) > most_bubble)
          most_bubble = at.bubble;
        at.end = input_at;
      }
      if (kind == forward && at.done[forward] == 0) at.start = at.end;
      const int to = kind == forward ? rank + 1 : rank - 1;
      if (to >= 0 && to <= last_)
        there_[(kind * count_ + at.done[kind]) * stride_ + rank] =
            links_.there(rank, to, at.end + at.time[kind]);
    }
    if (at.memory + at.need[kind] > at.limit) failed = true;
    at.end += at.time[kind];
    at.memory += at.change[kind];
    const int microbatch = at.done[kind]++;
    if (out_ != nullptr)
      out_->push(rank, {rank, microbatch, 0,
                        kind == forward ? job_kind::forward
                        : kind == input ? job_kind::backward_input
                                        : job_kind::backward_weight});
  }

  //! To the end of the last job.
  constexpr std::int64_t makespan() const {
    std::int64_t most = 0;
    for (int rank = 0; rank <= last_; ++rank)
      if (ranks_[rank].end > most) most = ranks_[rank].end;
    return most;
  }
  //! From a rank's first job to its last, the longest.
  constexpr std::int64_t span() const {
    std::int64_t most = 0;
    for (int rank = 0; rank <= last_; ++rank) {
      const std::int64_t span = ranks_[rank].end - ranks_[rank].start;
      if (span > most) most = span;
    }
    return most;
  }

  std::int64_t most_bubble = 0;  //!< of any rank
  bool failed = false;           //!< a job did not fit

 private:
  scratch<zb_rank>& ranks_;
  // Of the forwards, then of the backwards for the input: micro-batch by micro-batch, because
  // neighbouring ranks ask for each other's.
  scratch<std::int64_t>& there_;
  job_sink* out_;
  int count_;
  std::int64_t stride_;
  int last_;
  detail::link_clocks links_;
};

}  // namespace stretto::schedule
