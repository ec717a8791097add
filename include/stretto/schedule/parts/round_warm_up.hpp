#pragma once

#include <cstdint>

#include "stretto/schedule/parts/round_state.hpp"

namespace stretto::schedule {

//! How a pass in rounds begins, once the first micro-batch has gone through the first chunk of
//! every rank: with the forwards that fit before the first ones come back. False when the pass
//! cannot keep within the limits.
class round_warm_up {
 public:
  constexpr explicit round_warm_up(round_state& state)
      : p_(state.p), m_(state.m), v_(state.v), state_(state) {}

  //! ZB-V's: forwards of the first chunk until the first one comes back up the V; then both
  //! chunks in turn, until no rank has had fewer than the one before.
  constexpr bool run_lean() {
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
  //! @param first  as it was first published: only while one of the last of these chunks would, too
  constexpr bool run(bool first) {
    for (int chunk = 1; chunk <= v_; ++chunk) {
      const bool down = chunk % 2 == 1;  // the chunk before goes down the ranks
      const bool last = chunk == v_;
      const int turn = down ? p_ - 1 : 0;
      std::int64_t until = state_.ranks[turn].free;
      if (!last && !state_.put(turn, chunk, forward)) return false;
      for (int step = 1; step < p_; ++step) {
        const int rank = down ? p_ - 1 - step : step;
        until += state_.hop(down ? rank + 1 : rank - 1, rank) +
                 state_.cost(rank, last ? 0 : chunk, last ? input : forward).time;
        if (!fill_forwards(rank, chunk, down, until, first)) return false;
        if (!last && !state_.put(rank, chunk, forward)) return false;
      }
    }
    return true;
  }

 private:
  static constexpr int forward = round_state::forward;
  static constexpr int input = round_state::input;

  //! Forwards of the first chunks on the rank and those before it, while one of them would end by
  //! then; on the way up also until the rank has run as many as rank 0.
  constexpr bool fill_forwards(int rank, int chunks, bool down, std::int64_t until, bool strict) {
    const int first = down ? 0 : p_ - 1;
    const int step = down ? 1 : -1;
    const int least = down ? 0 : forwards_of(0, chunks);
    int chunk = (state_.ranks[rank].last + 1) % chunks;
    for (int barren = 0; barren < chunks; chunk = (chunk + 1) % chunks) {
      if (forwards_of(rank, chunks) >= least && (!state_.fits(rank, chunks - 1, forward) ||
                                                 (strict && !ends_by(rank, chunks - 1, until))))
        break;
      std::int64_t kept = state_.need(rank, chunk, input) + state_.need(rank, chunk, forward);
      for (int other = 1; other < v_; ++other)
        if (state_.done(rank, other, forward) == 0) kept += state_.need(rank, other, forward);
      if (state_.ranks[rank].level + kept > state_.ranks[rank].limit) break;
      ++barren;
      for (int other = first; other != rank + step; other += step) {
        if (!state_.can_forward(other, chunk)) continue;
        if (forwards_of(other, chunks) >= least && !ends_by(other, chunk, until)) continue;
        if (!state_.put(other, chunk, forward)) return false;
        barren = 0;
      }
    }
    return true;
  }
  //! Whether the chunk's next forward would, its input being there.
  constexpr bool ends_by(int rank, int chunk, std::int64_t until) {
    const bool any = state_.done(rank, chunk, forward) < m_;
    const std::int64_t there = any ? state_.ready(rank, chunk, forward) : 0;
    const std::int64_t free = state_.ranks[rank].free;
    return (there > free ? there : free) + state_.cost(rank, chunk, forward).time <= until;
  }
  constexpr int forwards_of(int rank, int chunks) const {
    int sum = 0;
    for (int chunk = 0; chunk < chunks; ++chunk) sum += state_.done(rank, chunk, forward);
    return sum;
  }

  int p_, m_, v_;
  round_state& state_;
};

}  // namespace stretto::schedule
