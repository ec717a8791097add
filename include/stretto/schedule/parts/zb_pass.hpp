#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/zb_state.hpp"

namespace stretto::schedule {

//! One greedy pass of automatic zero bubble with one chunk (Qi et al. 2023, section 3.1): a warm-up
//! that fills the time before the first backward as far as memory allows, then a forward and a
//! backward for the input a turn and rank; backwards for the weights fill the waits, and are forced
//! where memory is needed. `variant` is a sum of three choices: 4 lets the warm-up end early rather
//! than delay the first backward; 2 has a rank that is far ahead wait for the backward that comes;
//! 1 fills a wait too short for a whole backward even where another rank waits longer.
//!
//! Given its memory by the caller: `ranks` one entry a rank, `there` 2 p m; without `out` it only
//! measures.
class zb_pass {
 public:
  constexpr zb_pass(const shape& sizes, const job_table_view& table, int variant,
                    scratch<zb_rank>& ranks, scratch<std::int64_t>& there, job_sink* out = nullptr)
      : ranks_(ranks),
        count_(sizes.microbatches),
        last_(sizes.ranks - 1),
        hop_(table.hops()),
        state_(sizes, table, ranks, there, out),
        early_((variant & 4) != 0),
        yielding_((variant & 2) != 0),
        greedy_((variant & 1) != 0) {}

  //! @return false when a job fits no more
  constexpr bool run() {
    warm_up();
    for (int turn = 1; turn < count_ && !state_.failed; ++turn) {
      choose_forwards();
      for (int rank = 0; rank <= last_; ++rank)
        if (ranks_[rank].more > 0) put_filled(rank, forward);
      for (int rank = last_; rank >= 0; --rank) {
        if (rank == 0 && ranks_[0].done[forward] == count_)
          while (state_.pending(ranks_[0])) state_.put(0, weight);
        put_filled(rank, input);
      }
    }
    for (int rank = 0; rank <= last_; ++rank)
      while (state_.pending(ranks_[rank])) state_.put(rank, weight);
    return !state_.failed;
  }

  //! To the end of the last job.
  constexpr std::int64_t makespan() const { return state_.makespan(); }
  //! From a rank's first job to its last, the longest.
  constexpr std::int64_t span() const { return state_.span(); }

 private:
  static constexpr int forward = zb_state::forward;
  static constexpr int input = zb_state::input;
  static constexpr int weight = zb_state::weight;

  //! Appends the rank's next job of the kind, after the backwards for the weights that make room
  //! for it or fill the wait.
  constexpr void put_filled(int rank, int kind) {
    zb_rank& at = ranks_[rank];
    const std::int64_t needed = kind == forward ? at.reserve : at.need[kind];
    // After a forward, what is put off must still fit too.
    const std::int64_t beside = kind == forward ? at.change[forward] + at.need[weight] : 0;
    const std::int64_t room = needed > beside ? needed : beside;
    while (state_.pending(at) && at.memory + room > at.limit) state_.put(rank, weight);
    const std::int64_t until = state_.arrival(rank, kind);
    while (state_.pending(at) && at.end + at.time[weight] <= until) state_.put(rank, weight);
    // One that does not fit delays this rank; that harms nobody while another waits for longer.
    if (state_.pending(at) && until > at.end &&
        (greedy_ || until - at.end > state_.most_bubble - at.bubble))
      state_.put(rank, weight);
    state_.put(rank, kind);
  }

  constexpr void warm_up() {
    for (int rank = 0; rank <= last_; ++rank) state_.put(rank, forward);
    // 1. How many more forwards end before the first gradient comes back, from the last rank up.
    std::int64_t first_back = ranks_[last_].end + ranks_[last_].time[input];
    for (int rank = last_ - 1; rank >= 0; --rank) {
      zb_rank& at = ranks_[rank];
      const std::int64_t gradient = first_back + hop_(rank + 1, rank);
      std::int64_t end = at.end;
      std::int64_t memory = at.memory;
      while (at.more < count_ - 1 && memory + at.reserve <= at.limit &&
             (early_ ? end + at.time[forward] <= gradient : end < gradient)) {
        memory += at.change[forward];
        end += at.time[forward];
        ++at.more;
      }
      first_back = (end > gradient ? end : gradient) + at.time[input];
    }
    // 2. Every rank at least one ahead of the next, unless it has run all.
    for (int rank = 1; rank <= last_; ++rank) {
      const std::int32_t before = ranks_[rank - 1].more;
      const std::int32_t most = before == count_ - 1 || before == 0 ? before : before - 1;
      if (ranks_[rank].more > most) ranks_[rank].more = most;
    }
    for (int rank = 0; rank <= last_; ++rank)
      for (int k = ranks_[rank].more; k > 0; --k) state_.put(rank, forward);
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
    const std::int64_t back =
        next.end + next.time[forward] + next.time[input] + hop_(rank + 1, rank);
    if (at.end >= back) return true;
    std::int64_t end = at.end + at.time[forward];
    std::int64_t memory = at.memory;
    for (int left = at.done[input] - at.done[weight]; left > 0 && memory + at.reserve > at.limit;
         --left) {
      memory += at.change[weight];
      end += at.time[weight];
    }
    return end > back && back - at.end <= state_.most_bubble - at.bubble;
  }

  scratch<zb_rank>& ranks_;
  int count_;
  int last_;
  hop_times hop_;
  zb_state state_;
  bool early_;
  bool yielding_;
  bool greedy_;
};

}  // namespace stretto::schedule
