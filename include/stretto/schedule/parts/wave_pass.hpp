#pragma once

#include <cstdint>

#include "stretto/model/cost.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/parts/wave_clock.hpp"
#include "stretto/schedule/parts/wave_jobs.hpp"
#include "stretto/schedule/parts/wave_memory.hpp"
#include "stretto/schedule/parts/wave_rules.hpp"
#include "stretto/schedule/parts/wave_state.hpp"

namespace stretto::schedule {

//! One greedy pass over a wave of chunks, in the order of time: the rank that is free next takes,
//! of the jobs whose inputs are there and whose memory is safe (see wave_memory), the one that the
//! rules prefer, fills a gap with a backward for the weights, or waits. What a rank knows of the
//! future is when jobs that run now will be done. Jobs of one kind and chunk run in the order of
//! their micro-batches. Written in few, large statements: what a compiler counts in a constant
//! evaluation is statements and calls.
class wave_pass {
 public:
  //! Without `out` it only measures.
  constexpr wave_pass(const shape& sizes, const job_table_view& table, const wave_rules& rules,
                      job_sink* out = nullptr)
      : v_(sizes.chunks),
        rules_(rules),
        memory_(sizes, table),
        state_(sizes, table, rules),
        clock_(sizes.ranks),
        jobs_(state_, memory_, clock_, table, rules.fixed, out) {}
  constexpr ~wave_pass() = default;  // nvcc needs it written

  //! @return false when the pass cannot keep within the limits
  constexpr bool run() {
    clock_.set(0, 1);
    while (jobs_.left > 0)
      if (clock_.of(clock_.first()) == never || !decide(clock_.first())) return false;
    return true;
  }

  //! To the end of the last job.
  constexpr std::int64_t makespan() const { return jobs_.makespan(); }
  //! From a rank's first job to its last, the longest.
  constexpr std::int64_t span() const { return jobs_.span(); }

 private:
  static constexpr std::int64_t never = wave_clock::never;
  static constexpr int forward = wave_forward;
  static constexpr int input = wave_input;
  static constexpr int weight = wave_weight;

  //! When inputs come that a rank waits for; never: no such input is on its way.
  struct arrivals {
    std::int64_t gradient = never;
    std::int64_t activation = never;  // for chunks above a given one
    std::int64_t urgent = never;      // for the first wave, above that chunk
  };

  constexpr arrivals coming(int rank, std::int64_t now, int above) const {
    const bool limited = state_.ranks[rank].limited;
    const std::int32_t* const done = state_.done + 3 * rank * v_;
    arrivals found;
    for (int chunk = v_ - 1; chunk >= 0; --chunk) {
      const wave_cell& one = state_.cells[rank * v_ + chunk];
      std::int64_t there = one.ready[input];
      if (there > now && there < found.gradient && one.open[input] > 0 &&
          (!limited || memory_.has_room(rank, chunk))) {
        found.gradient = there;
        if (chunk == v_ - 1 && done[3 * chunk + input] == 0) found.urgent = there;
      }
      there = one.ready[forward];
      if (chunk > above && there > now && one.open[forward] > 0 &&
          (there < found.activation || there < found.urgent) &&
          (!limited || rules_.fixed || memory_.is_safe(rank, chunk, done))) {
        if (there < found.activation) found.activation = there;
        if (there < found.urgent && done[3 * chunk + forward] == 0) found.urgent = there;
      }
    }
    return found;
  }

  //! The rank's next decision: a job, or to decide again later. False when a job fits no more.
  constexpr bool decide(int rank) {
    const wave_rank& at = state_.ranks[rank];
    const wave_cell* const cells = state_.cells + rank * v_;
    const std::int32_t* const done = state_.done + 3 * rank * v_;
    const std::int64_t now = clock_.of(rank);
    int back = -1;
    int ahead = -1;
    for (int chunk = v_ - 1; chunk >= 0; --chunk) {
      const wave_cell& one = cells[chunk];
      if (one.ready[input] > 0 && one.ready[input] <= now && one.open[input] > 0 &&
          (back < 0 || !rules_.upper_first) && (!at.limited || memory_.has_room(rank, chunk)))
        back = chunk;
      if (ahead < 0 && one.ready[forward] > 0 && one.ready[forward] <= now &&
          one.open[forward] > 0 &&
          (!at.limited || rules_.fixed || memory_.is_safe(rank, chunk, done)))
        ahead = chunk;
    }
    const int oldest =
        at.head < at.tail ? state_.pending[std::int64_t{rank} * v_ * state_.m + at.head] : -1;
    if (back < 0 && ahead < 0) return idle(rank, now, oldest);
    const bool forwards = back < 0 || (ahead >= 0 && rules_.alternate && at.last == input + 1);
    const int chunk = forwards ? ahead : back;
    if (at.limited && !memory_.fits(rank, chunk, forwards, oldest >= 0))
      return oldest >= 0 && jobs_.put(rank, oldest, weight);
    const std::int64_t until = forwards ? better_wait(rank, now, chunk) : never;
    if (until == never) return jobs_.put(rank, chunk, forwards ? forward : input);
    if (oldest >= 0 && cells[oldest].time[weight] <= until - now)
      return jobs_.put(rank, oldest, weight);
    clock_.set(rank, until);
    return true;
  }

  //! Until when the forward should wait; never when it should not.
  constexpr std::int64_t better_wait(int rank, std::int64_t now, int chunk) const {
    if (state_.ranks[rank].busiest || (!rules_.first_wave && rules_.patience == 0)) return never;
    const std::int64_t time = state_.cells[rank * v_ + chunk].time[forward];
    const arrivals soon = coming(rank, now, chunk);
    if (rules_.first_wave && soon.urgent < never && soon.urgent < now + time) return soon.urgent;
    const bool patient = rules_.patient_forward && soon.activation < soon.gradient;
    const std::int64_t until = patient ? soon.activation : soon.gradient;
    const bool waits =
        rules_.patience > 0 && until < never && rules_.patience * (until - now) < time;
    return waits ? until : never;
  }

  //! Nothing else can run: a backward for the weights, or nothing.
  constexpr bool idle(int rank, std::int64_t now, int oldest) {
    const arrivals soon = coming(rank, now, -1);
    const bool before_forward = soon.activation < soon.gradient;
    const std::int64_t until = before_forward ? soon.activation : soon.gradient;
    if (oldest >= 0 &&
        (until == never || fills(rank, until - now, state_.cells[rank * v_ + oldest].time[weight],
                                 before_forward ? rules_.before_forward : rules_.before_backward)))
      return jobs_.put(rank, oldest, weight);
    clock_.set(rank, until);
    return true;
  }
  constexpr bool fills(int rank, std::int64_t gap, std::int64_t time, fill_kind rule) const {
    const wave_rank& at = state_.ranks[rank];
    return time <= gap || rule == fill_kind::always ||
           ((rule == fill_kind::fifth || at.busiest) && 5 * gap >= time) ||
           (rule == fill_kind::slack && gap > jobs_.most_idle - at.idle);
  }

  int v_;
  const wave_rules& rules_;
  wave_memory memory_;
  wave_state state_;
  wave_clock clock_;
  wave_jobs jobs_;
};

}  // namespace stretto::schedule
