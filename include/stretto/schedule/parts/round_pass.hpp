#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/parts/round_state.hpp"

namespace stretto::schedule {

//! How one pass in rounds decides.
struct round_rules {
  bool lean = false;          //!< ZB-V's warm-up and order of backwards (v = 2); else ZB-VPP's
  bool fill_back = false;     //!< a gap before a backward may take more than it holds,
  bool fill_forward = false;  //!< and one before a forward
  //! Before backwards on the rank of the last stage a gap need hold but a fifth.
  bool fill_loss = false;
  //! A gap may be too short, or a rank idle for too long, by as much as a message takes.
  bool spare_hop = false;
};

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
        hop_(table.communication),
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
    if (!(rules_.lean ? warm_up_lean() : warm_up())) return false;
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
    const std::int64_t spare = rules_.spare_hop ? hop_ : 0;
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

  //! ZB-V's warm-up: forwards of the first chunk until the first one comes back up the V; then both
  //! chunks in turn, until no rank has had fewer than the one before.
  constexpr bool warm_up_lean() {
    for (int rank = p_ - 1; rank >= 0; --rank) {
      while (rank + 1 < p_ && state_.done(rank, 0, forward) < m_ &&
             state_.ranks[rank].level + 2 * (rank + 1) * state_.need(rank, 0, forward) <=
                 state_.ranks[rank].limit &&
             state_.ranks[rank].free + state_.cost(rank, 0, forward).time <=
                 state_.ready(rank, 1, forward))
        for (int first = 0; first <= rank; ++first)
          if (!state_.put(first, 0, forward)) return false;
      if (!state_.put(rank, 1, forward)) return false;
    }
    int chunk = 0;
    for (int rank = 1; rank < p_; ++rank)
      while (state_.ranks[rank].forwards < state_.ranks[rank - 1].forwards ||
             (state_.done(rank, 1, forward) <= state_.done(rank - 1, 1, forward) &&
              state_.done(rank - 1, 1, forward) < m_)) {
        for (int later = p_ - 1; later >= rank; --later)
          if (state_.done(later, chunk, forward) < m_ && !state_.put(later, chunk, forward))
            return false;
        chunk = 1 - chunk;
      }
    return true;
  }

  //! ZB-VPP's: before the first micro-batch goes through the next chunk, and before its backward,
  //! each rank runs as many forwards as would end before that does.
  constexpr bool warm_up() {
    for (int chunk = 1; chunk <= v_; ++chunk) {
      const bool down = chunk % 2 == 1;  // the chunk before goes down the ranks
      const bool last = chunk == v_;
      const int turn = down ? p_ - 1 : 0;
      std::int64_t until = state_.ranks[turn].free;
      if (!last && !state_.put(turn, chunk, forward)) return false;
      for (int step = 1; step < p_; ++step) {
        const int rank = down ? p_ - 1 - step : step;
        until += hop_ + state_.cost(rank, last ? 0 : chunk, last ? input : forward).time;
        if (!fill_forwards(rank, chunk, down, until)) return false;
        if (!last && !state_.put(rank, chunk, forward)) return false;
      }
    }
    return true;
  }

  //! Forwards of the first chunks on the rank and those before it, while one of them would end by
  //! then; on the way up also until the rank has run as many as rank 0.
  constexpr bool fill_forwards(int rank, int chunks, bool down, std::int64_t until) {
    const int first = down ? 0 : p_ - 1;
    const int step = down ? 1 : -1;
    const int least = down ? 0 : forwards_of(0, chunks);
    int chunk = (state_.ranks[rank].last + 1) % chunks;
    for (int barren = 0; barren < chunks; chunk = (chunk + 1) % chunks) {
      if (forwards_of(rank, chunks) >= least && !state_.fits(rank, chunks - 1, forward)) break;
      std::int64_t kept = state_.need(rank, chunk, input) + state_.need(rank, chunk, forward);
      for (int other = 1; other < v_; ++other)
        if (state_.done(rank, other, forward) == 0) kept += state_.need(rank, other, forward);
      if (state_.ranks[rank].level + kept > state_.ranks[rank].limit) break;
      ++barren;
      for (int other = first; other != rank + step; other += step) {
        if (!state_.can_forward(other, chunk)) continue;
        const std::int64_t there = state_.ready(other, chunk, forward);
        const std::int64_t start =
            there > state_.ranks[other].free ? there : state_.ranks[other].free;
        if (forwards_of(other, chunks) >= least &&
            start + state_.cost(other, chunk, forward).time > until)
          continue;
        if (!state_.put(other, chunk, forward)) return false;
        barren = 0;
      }
    }
    return true;
  }
  constexpr int forwards_of(int rank, int chunks) const {
    int sum = 0;
    for (int chunk = 0; chunk < chunks; ++chunk) sum += state_.done(rank, chunk, forward);
    return sum;
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
      if (chunk < v_ && !put_filled(rank, chunk, input, rules_.fill_back)) return false;
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
  std::int64_t hop_;
  round_rules rules_;
  const std::int64_t* allowed_;
  std::int64_t most_allowed_ = 0;
  round_state state_;
  scratch<std::int8_t> chosen_;  // per rank: the chunk of its next backward
};

}  // namespace stretto::schedule
