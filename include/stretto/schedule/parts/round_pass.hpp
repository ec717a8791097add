#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/parts/round_rules.hpp"
#include "stretto/schedule/parts/round_state.hpp"
#include "stretto/schedule/parts/round_warm_up.hpp"

namespace stretto::schedule {

//! One pass over a wave of chunks as ZB-V of Qi et al. 2023 and Paddle's ZB-VPP have it: the ranks
//! warm up with the forwards that fit before the first ones come back, then take turns, a backward
//! for the input and a forward each. Gaps before those are filled with backwards for the weights,
//! the oldest first, and with one that is too long where the rank has been idle for less than
//! another.
class round_pass {
 public:
  //! @param allowed  how long each rank may be idle; the longest of all may be reached by any
  //! @param out      where the lists go; none: only measures
  constexpr round_pass(const shape& sizes, const job_table_view& table, const round_rules& rules,
                       const std::int64_t* allowed, job_sink* out)
      : p_(sizes.ranks),
        m_(sizes.microbatches),
        v_(sizes.chunks),
        last_(v_ % 2 == 0 ? 0 : p_ - 1),
        rules_(rules),
        allowed_(allowed),
        state_(sizes, table, out),
        chosen_(p_) {
    for (int rank = 0; rank < p_; ++rank)
      if (allowed[rank] > most_allowed_) most_allowed_ = allowed[rank];
  }
  constexpr ~round_pass() = default;  // nvcc needs it written

  //! @return false when the pass cannot keep within the limits
  constexpr bool run() {
    for (int rank = 0; rank < p_; ++rank)
      if (!state_.put(rank, 0, forward)) return false;
    round_warm_up warm_up(state_);
    if (!(rules_.lean ? warm_up.run_lean() : warm_up.run(rules_.first))) return false;
    while (state_.ranks[last_].inputs < m_ * v_) {
      const std::int64_t before = state_.jobs;
      if (!make_room() || !(rules_.lean ? backwards_lean() : backwards()) || !forwards() ||
          state_.jobs == before)
        return false;
    }
    for (int rank = 0; rank < p_; ++rank)
      while (state_.has_pending(rank))
        if (!state_.put_weight(rank)) return false;
    return state_.jobs == std::int64_t{3} * p_ * v_ * m_;
  }

  //! To the end of the last job.
  constexpr std::int64_t makespan() const {
    std::int64_t most = 0;
    for (int rank = 0; rank < p_; ++rank)
      if (state_.ranks[rank].free > most) most = state_.ranks[rank].free;
    return most;
  }
  //! From a rank's first job to its last, the longest.
  constexpr std::int64_t span() const {
    std::int64_t most = 0;
    for (int rank = 0; rank < p_; ++rank)
      if (state_.ranks[rank].free - state_.ranks[rank].start > most)
        most = state_.ranks[rank].free - state_.ranks[rank].start;
    return most;
  }
  //! Idle time of a rank between its first job and its last, and of the rank with the most.
  constexpr std::int64_t idle(int rank) const { return state_.ranks[rank].idle; }
  constexpr std::int64_t most_idle() const { return state_.most_idle; }

 private:
  static constexpr int forward = round_state::forward;
  static constexpr int input = round_state::input;
  static constexpr int weight = round_state::weight;

  //! Runs the job, and before it the weights that go into the gap; false when something does not
  //! fit.
  constexpr bool put_filled(int rank, int chunk, int kind, bool more) {
    const round_rank& at = state_.ranks[rank];
    const std::int64_t until = state_.ready(rank, chunk, kind);
    int from = state_.source(rank, chunk, kind);
    if (from < 0) from = rank > 0 ? rank - 1 : 1;  // its authors count a hop there, too
    const std::int64_t spare = rules_.spare_hop ? state_.hop(from, rank) : 0;
    const std::int64_t share = rules_.fill_loss && kind == input && rank == last_ ? 5 : 1;
    while (state_.has_pending(rank) && share * (until + spare - at.free) >=
                                           state_.cost(rank, state_.next_weight(rank), weight).time)
      if (!state_.put_weight(rank)) return false;
    const std::int64_t slack = most_allowed_ - allowed_[rank];
    const std::int64_t most = state_.most_idle > slack ? state_.most_idle : slack;
    if (more && state_.has_pending(rank) && until - spare - at.free > most - at.idle &&
        !state_.put_weight(rank))
      return false;
    return state_.put(rank, chunk, kind);
  }

  //! The weights that must run before any backward fits.
  constexpr bool make_room() {
    for (int rank = 0; rank < p_; ++rank)
      while (!state_.fits(rank, 0, input))
        if (!state_.has_pending(rank) || !state_.put_weight(rank)) return false;
    return true;
  }
  constexpr int nth(int turn) const { return v_ % 2 == 0 ? turn : p_ - 1 - turn; }
  constexpr bool backwards() {
    for (int turn = 0; turn < p_; ++turn) {
      const int rank = nth(turn);
      int chunk = 0;
      while (chunk < v_ && !state_.can_back(rank, chunk)) ++chunk;
      const bool more = rules_.fill_back || (rules_.first && chunk == 0);
      if (chunk < v_ && !put_filled(rank, chunk, input, more)) return false;
    }
    return true;
  }
  //! Which chunk's, is settled for all ranks first; then from where the gradients come.
  constexpr bool backwards_lean() {
    for (int rank = 0; rank < p_; ++rank) {
      const int upper = state_.done(rank, 1, input);
      chosen_[rank] = state_.done(rank, 0, input) < upper &&
                              (rank + 1 == p_ || upper == m_ ||
                               state_.ready(rank, 0, input) != round_state::never)
                          ? 0
                          : 1;
    }
    for (int rank = p_ - 1; rank >= 0; --rank)
      if (chosen_[rank] == 0 && state_.can_back(rank, 0) && !put_filled(rank, 0, input, true))
        return false;
    for (int rank = 0; rank < p_; ++rank)
      if (chosen_[rank] == 1 && state_.can_back(rank, 1) &&
          !put_filled(rank, 1, input, rules_.fill_back))
        return false;
    return true;
  }
  constexpr bool forwards() {
    for (int turn = 0; turn < p_; ++turn) {
      const int rank = nth(turn);
      int chunk = v_ - 1;
      while (chunk >= 0 && !state_.can_forward(rank, chunk)) --chunk;
      if (chunk < 0) continue;
      while (!state_.fits(rank, chunk, forward))
        if (!state_.has_pending(rank) || !state_.put_weight(rank)) return false;
      if (!put_filled(rank, chunk, forward, rules_.fill_forward)) return false;
    }
    return true;
  }

  int p_, m_, v_;
  int last_;  // the rank of the last stage
  round_rules rules_;
  const std::int64_t* allowed_;
  std::int64_t most_allowed_ = 0;
  round_state state_;
  scratch<std::int8_t> chosen_;  // per rank: the chunk of its next backward
};

}  // namespace stretto::schedule
