#pragma once

#include <cstdint>

#include "stretto/model/cost.hpp"
#include "stretto/model/link_clocks.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/schedule/parts/wave_clock.hpp"
#include "stretto/schedule/parts/wave_memory.hpp"
#include "stretto/schedule/parts/wave_state.hpp"

namespace stretto::schedule {

//! The jobs of a pass over a wave of chunks as they run: what each takes of its rank's time and
//! memory, which others it opens, and when the input that it makes is there.
class wave_jobs {
 public:
  //! @param table  what messages take
  //! @param fixed  each rank has an order of its own: see wave_rules
  //! @param out    where the lists go; none: only measures
  constexpr wave_jobs(wave_state& state, wave_memory& memory, wave_clock& clock,
                      const job_table_view& table, bool fixed, job_sink* out)
      : left(std::int64_t{3} * state.p * state.v * state.m),
        state_(state),
        memory_(memory),
        clock_(clock),
        v_(state.v),
        links_(table, state.p, state.v),
        fixed_(fixed),
        out_(out) {}

  //! Runs the chunk's next job of the kind; false when it does not fit.
  constexpr bool put(int rank, int chunk, int kind) {
    wave_rank& at = state_.ranks[rank];
    const int here = rank * v_ + chunk;
    wave_cell& one = state_.cells[here];
    if (at.limited && !memory_.take(rank, chunk, kind)) return false;
    // When the rank and the input allow, and not later because the rank had waited for another.
    const std::int64_t start =
        kind != weight && one.ready[kind] > at.free ? one.ready[kind] : at.free;
    if (at.free == 0)
      at.start = start;
    else if ((at.idle += start - at.free) > most_idle)
      most_idle = at.idle;
    at.free = start + one.time[kind];
    clock_.set(rank, at.free);
    const int microbatch = state_.done[3 * here + kind]++;
    if (out_ != nullptr)
      out_->push(rank, {one.stage, microbatch, 0,
                        kind == forward ? job_kind::forward
                        : kind == input ? job_kind::backward_input
                                        : job_kind::backward_weight});
    --left;
    if (kind == weight) {
      ++at.head;
      return true;
    }
    at.last = static_cast<std::int8_t>(kind + 1);
    one.ready[kind] =
        state_.arrivals[std::int64_t{2 * here + kind} * (state_.m + 1) + microbatch + 1];
    if (kind == input) state_.pending[std::int64_t{rank} * v_ * state_.m + at.tail++] = chunk;
    if (fixed_) {
      one.open[kind] = 0;
      state_.open_next(rank);
    } else if (kind == forward) {
      --one.open[forward];
      if (chunk > 0) ++(&one)[-1].open[forward];
    } else if (chunk + 1 == v_) {
      ++one.open[forward];
    }
    if (one.target[kind] >= 0) send(one.target[kind], microbatch, rank);
    return true;
  }

  //! To the end of the last job.
  constexpr std::int64_t makespan() const {
    std::int64_t most = 1;
    for (int rank = 0; rank < state_.p; ++rank)
      if (state_.ranks[rank].free > most) most = state_.ranks[rank].free;
    return most - 1;
  }
  //! From a rank's first job to its last, the longest.
  constexpr std::int64_t span() const {
    std::int64_t most = 0;
    for (int rank = 0; rank < state_.p; ++rank) {
      const std::int64_t span = state_.ranks[rank].free - state_.ranks[rank].start;
      if (span > most) most = span;
    }
    return most;
  }

  std::int64_t left;           //!< that have not run
  std::int64_t most_idle = 0;  //!< of any rank

 private:
  static constexpr int forward = wave_forward;
  static constexpr int input = wave_input;
  static constexpr int weight = wave_weight;

  //! Tells of the input that the job just put will make.
  constexpr void send(int target, int microbatch, int from) {
    wave_cell& to = state_.cells[target / 2];
    const std::int64_t made = state_.ranks[from].free;
    const std::int64_t there = to.rank == from ? made
                               : links_.plain  ? made + links_.hop.within
                                               : links_.there(from, to.rank, made);
    state_.arrivals[std::int64_t{target} * (state_.m + 1) + microbatch] = there;
    if (state_.done[3 * (target / 2) + target % 2] != microbatch) return;
    to.ready[target % 2] = there;
    const std::int64_t free = state_.ranks[to.rank].free;
    if (there < clock_.of(to.rank)) clock_.set(to.rank, there > free ? there : free);
  }

  wave_state& state_;
  wave_memory& memory_;
  wave_clock& clock_;
  int v_;
  detail::link_clocks links_;
  bool fixed_;
  job_sink* out_;
};

}  // namespace stretto::schedule
