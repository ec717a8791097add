#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/schedule/concept.hpp"

namespace stretto::schedule {

//! One rank's costs and state in a pass of zb_auto; arrays are for F, I, W.
struct zb_rank {
  std::int64_t time[3];
  std::int64_t change[3];
  std::int64_t need[3];   //!< most memory in use above the level at the job's start
  std::int64_t limit;     //!< of memory
  std::int64_t reserve;   //!< that a forward must leave, so that its backward can follow
  std::int64_t end;       //!< of the last job
  std::int64_t start;     //!< of the first
  std::int64_t bubble;    //!< idle time after the first forward
  std::int64_t memory;    //!< in use
  std::int32_t done[3];   //!< jobs so far
  std::int32_t more;      //!< forwards wanted now
};

//! One greedy pass of automatic zero bubble with one chunk (Qi et al. 2023, section 3.1): a warm-up
//! that fills the time before the first backward as far as memory allows, then a forward and a
//! backward for the input a turn and rank; backwards for the weights fill the waits, and are forced
//! where memory is needed. `variant` is a sum of three choices: 4 lets the warm-up end early rather
//! than delay the first backward; 2 has a rank that is far ahead wait for the backward that comes;
//! 1 fills a wait too short for a whole backward even where another rank waits longer.
//!
//! Given its memory by the caller: `ranks` one entry a rank, `ends` 2 p m; without `out` it only
//! measures.
class zb_pass {
 public:
  constexpr zb_pass(const shape& sizes, const job_table_view& table, int variant,
                    scratch<zb_rank>& ranks, scratch<std::int64_t>& ends, job_sink* out = nullptr)
      : ranks_(ranks),
        ends_(ends),
        out_(out),
        count_(sizes.microbatches),
        stride_(sizes.ranks),
        last_(sizes.ranks - 1),
        hop_(table.communication),
        early_((variant & 4) != 0),
        yielding_((variant & 2) != 0),
        greedy_((variant & 1) != 0) {
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

  //! @return false when a job fits no more
  constexpr bool run() {
    warm_up();
    for (int turn = 1; turn < count_ && !failed_; ++turn) {
      choose_forwards();
      for (int rank = 0; rank <= last_; ++rank)
        if (ranks_[rank].more > 0) put_filled(rank, forward);
      for (int rank = last_; rank >= 0; --rank) {
        if (rank == 0 && ranks_[0].done[forward] == count_)
          while (pending(ranks_[0])) put(0, weight);
        put_filled(rank, input);
      }
    }
    for (int rank = 0; rank <= last_; ++rank)
      while (pending(ranks_[rank])) put(rank, weight);
    return !failed_;
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

 private:
  static constexpr int forward = 0;
  static constexpr int input = 1;
  static constexpr int weight = 2;

  static constexpr bool pending(const zb_rank& at) { return at.done[weight] < at.done[input]; }

  //! When the input of the rank's next job of the kind is there.
  constexpr std::int64_t arrival(int rank, int kind) const {
    if (kind == forward)
      return rank == 0 ? 0 : ends_[ranks_[rank].done[forward] * stride_ + rank - 1] + hop_;
    if (rank == last_) return 0;
    return ends_[(count_ + ranks_[rank].done[input]) * stride_ + rank + 1] + hop_;
  }

  //! Appends the rank's next job of the kind.
  constexpr void put(int rank, int kind) {
    zb_rank& at = ranks_[rank];
    if (kind != weight) {
      const std::int64_t input_at = arrival(rank, kind);
      if (input_at > at.end) {
        if (at.done[forward] > 0 && (at.bubble += input_at - at.end) > most_) most_ = at.bubble;
        at.end = input_at;
      }
      if (kind == forward && at.done[forward] == 0) at.start = at.end;
      ends_[(kind * count_ + at.done[kind]) * stride_ + rank] = at.end + at.time[kind];
    }
    if (at.memory + at.need[kind] > at.limit) failed_ = true;
    at.end += at.time[kind];
    at.memory += at.change[kind];
    const int microbatch = at.done[kind]++;
    if (out_ != nullptr)
      out_->push(rank, {rank, microbatch, 0,
                        kind == forward ? job_kind::forward
                        : kind == input ? job_kind::backward_input
                                        : job_kind::backward_weight});
  }

  //! The same after the backwards for the weights that make room for it or fill the wait.
  constexpr void put_filled(int rank, int kind) {
    zb_rank& at = ranks_[rank];
    const std::int64_t needed = kind == forward ? at.reserve : at.need[kind];
    // After a forward, what is put off must still fit too.
    const std::int64_t beside = kind == forward ? at.change[forward] + at.need[weight] : 0;
    const std::int64_t room = needed > beside ? needed : beside;
    while (pending(at) && at.memory + room > at.limit) put(rank, weight);
    const std::int64_t until = arrival(rank, kind);
    while (pending(at) && at.end + at.time[weight] <= until) put(rank, weight);
    // One that does not fit delays this rank; that harms nobody while another waits for longer.
    if (pending(at) && until > at.end && (greedy_ || until - at.end > most_ - at.bubble))
      put(rank, weight);
    put(rank, kind);
  }

  constexpr void warm_up() {
    for (int rank = 0; rank <= last_; ++rank) put(rank, forward);
    // 1. How many more forwards end before the first gradient comes back, from the last rank up.
    std::int64_t first_back = ranks_[last_].end + ranks_[last_].time[input];
    for (int rank = last_ - 1; rank >= 0; --rank) {
      zb_rank& at = ranks_[rank];
      std::int64_t end = at.end;
      std::int64_t memory = at.memory;
      while (at.more < count_ - 1 && memory + at.reserve <= at.limit &&
             (early_ ? end + at.time[forward] <= first_back + hop_ : end < first_back + hop_)) {
        memory += at.change[forward];
        end += at.time[forward];
        ++at.more;
      }
      first_back = (end > first_back + hop_ ? end : first_back + hop_) + at.time[input];
    }
    // 2. Every rank at least one ahead of the next, unless it has run all.
    for (int rank = 1; rank <= last_; ++rank) {
      const std::int32_t before = ranks_[rank - 1].more;
      const std::int32_t most = before == count_ - 1 || before == 0 ? before : before - 1;
      if (ranks_[rank].more > most) ranks_[rank].more = most;
    }
    for (int rank = 0; rank <= last_; ++rank)
      for (int k = ranks_[rank].more; k > 0; --k) put(rank, forward);
    for (int rank = last_; rank >= 0; --rank) put_filled(rank, input);
  }

  //! Which ranks run a forward in this turn.
  constexpr void choose_forwards() {
    std::int32_t below = 1;
    for (int rank = last_; rank >= 0; --rank) {
      zb_rank& at = ranks_[rank];
      at.more = at.done[forward] < count_ && (rank == last_ || !yielding_ || !waits(rank)) ? 1 : 0;
      if (at.more > below) at.more = below;
      below = at.more;
    }
  }

  //! Whether a rank that is two forwards ahead had better keep free for the gradient that the next
  //! rank can send at `back`.
  constexpr bool waits(int rank) const {
    const zb_rank& at = ranks_[rank];
    const zb_rank& next = ranks_[rank + 1];
    if (at.done[forward] < next.done[forward] + 2) return false;
    const std::int64_t back = next.end + next.time[forward] + next.time[input] + hop_;
    if (at.end >= back) return true;
    std::int64_t end = at.end + at.time[forward];
    std::int64_t memory = at.memory;
    for (int left = at.done[input] - at.done[weight]; left > 0 && memory + at.reserve > at.limit;
         --left) {
      memory += at.change[weight];
      end += at.time[weight];
    }
    return end > back && back - at.end <= most_ - at.bubble;
  }

  scratch<zb_rank>& ranks_;
  // Of the forwards, then of the backwards for the input: micro-batch by micro-batch, because
  // neighbouring ranks ask for each other's.
  scratch<std::int64_t>& ends_;
  job_sink* out_;
  int count_;
  std::int64_t stride_;
  int last_;
  std::int64_t hop_;
  std::int64_t most_ = 0;  // the largest bubble of any rank
  bool early_;
  bool yielding_;
  bool greedy_;
  bool failed_ = false;
};

}  // namespace stretto::schedule
