#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/link_clocks.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"

namespace stretto::schedule {

//! A rank in a pass in rounds.
struct round_rank {
  std::int64_t free = 0;   // the end of its last job
  std::int64_t start = 0;  // of its first
  std::int64_t idle = 0;   // between the two
  std::int64_t level = 0;  // of memory
  std::int64_t limit = 0;
  std::int32_t forwards = 0;
  std::int32_t inputs = 0;
  std::int32_t head = 0;  // of its pending backwards for the weights
  std::int32_t tail = 0;
  std::int32_t last = 0;  // the chunk of its last job
};

//! Where a pass in rounds stands: what has run, when, and what could.
class round_state {
 public:
  static constexpr int forward = 0;
  static constexpr int input = 1;
  static constexpr int weight = 2;
  static constexpr std::int64_t never = -1;

  constexpr round_state(const shape& sizes, const job_table_view& table, job_sink* out)
      : p(sizes.ranks),
        m(sizes.microbatches),
        v(sizes.chunks),
        ranks(p),
        hop(table.hops()),
        where_{.kind = placement_kind::wave, .ranks = p, .chunks = v},
        table_(table),
        links_(table, p, v),
        out_(out),
        done_(std::int64_t{3} * p * v),
        there_(std::int64_t{2} * p * v * m),
        pending_(std::int64_t{p} * v * m) {
    for (int rank = 0; rank < p; ++rank) {
      ranks[rank].level = table.base_of(rank);
      ranks[rank].limit = table.limit_of(rank);
    }
  }
  constexpr ~round_state() = default;  // nvcc needs it written

  constexpr const job_cost& cost(int rank, int chunk, int kind) const {
    return table_.at(rank, chunk,
                     kind == forward ? job_kind::forward
                     : kind == input ? job_kind::backward_input
                                     : job_kind::backward_weight);
  }
  //! Memory above the level at the job's start.
  constexpr std::int64_t need(int rank, int chunk, int kind) const {
    const job_cost& of = cost(rank, chunk, kind);
    return of.change > of.peak ? of.change : of.peak;
  }
  constexpr bool fits(int rank, int chunk, int kind) const {
    return ranks[rank].level + need(rank, chunk, kind) <= ranks[rank].limit;
  }
  constexpr int done(int rank, int chunk, int kind) const {
    return done_[3 * (rank * v + chunk) + kind];
  }
  //! The rank that an input of the chunk comes from; -1: none but itself.
  constexpr int source(int rank, int chunk, int kind) const {
    const int from = (chunk % 2 == 0) == (kind == forward) ? rank - 1 : rank + 1;
    return from < p ? from : -1;
  }
  //! When the chunk's next input is there; never: nobody has made it yet. 0 where it comes from the
  //! rank itself, whose list has it.
  constexpr std::int64_t ready(int rank, int chunk, int kind) {
    const int from = source(rank, chunk, kind);
    if (from < 0) return 0;
    return there(from, chunk, kind, done(rank, chunk, kind)) - 1;
  }
  constexpr bool can_forward(int rank, int chunk) {
    const int next = done(rank, chunk, forward);
    return next < m && (chunk == 0 || done(rank, chunk - 1, forward) > next) &&
           ready(rank, chunk, forward) != never;
  }
  constexpr bool can_back(int rank, int chunk) {
    const int next = done(rank, chunk, input);
    const int before = chunk + 1 < v ? done(rank, chunk + 1, input) : done(rank, chunk, forward);
    return next < m && before > next && ready(rank, chunk, input) != never;
  }
  constexpr bool has_pending(int rank) const { return ranks[rank].head < ranks[rank].tail; }

  //! Runs the chunk's next job of the kind; false when it cannot, or does not fit.
  constexpr bool put(int rank, int chunk, int kind) {
    round_rank& at = ranks[rank];
    if (!fits(rank, chunk, kind)) return false;
    if (kind == forward && !can_forward(rank, chunk)) return false;
    const job_cost& spent = cost(rank, chunk, kind);
    const std::int64_t input_at = kind == weight ? 0 : ready(rank, chunk, kind);
    const std::int64_t start = input_at > at.free ? input_at : at.free;
    if (at.forwards == 0)
      at.start = start;
    else if ((at.idle += start - at.free) > most_idle)
      most_idle = at.idle;
    at.free = start + spent.time;
    at.level += spent.change;
    at.last = chunk;
    const int microbatch = done_[3 * (rank * v + chunk) + kind]++;
    const int to = kind == weight ? -1 : target(rank, chunk, kind);
    if (to >= 0) there(rank, chunk, kind, microbatch) = links_.there(rank, to, at.free) + 1;
    if (kind == forward) ++at.forwards;
    if (kind == input) {
      ++at.inputs;
      pending_[std::int64_t{rank} * v * m + at.tail++] = chunk;
    }
    if (out_ != nullptr)
      out_->push(rank, {where_.stage_of(rank, chunk), microbatch, 0,
                        kind == forward ? job_kind::forward
                        : kind == input ? job_kind::backward_input
                                        : job_kind::backward_weight});
    ++jobs;
    return true;
  }
  constexpr int next_weight(int rank) const {
    return pending_[std::int64_t{rank} * v * m + ranks[rank].head];
  }
  constexpr bool put_weight(int rank) {
    const int chunk = next_weight(rank);
    ++ranks[rank].head;
    return put(rank, chunk, weight);
  }

  int p, m, v;
  scratch<round_rank> ranks;
  hop_times hop;  //!< what messages take
  std::int64_t most_idle = 0;  //!< of any rank
  std::int64_t jobs = 0;       //!< that have run

 private:
  constexpr int target(int rank, int chunk, int kind) const {
    const int to = (chunk % 2 == 0) == (kind == forward) ? rank + 1 : rank - 1;
    return to < p ? to : -1;
  }
  //! When what the job has made is on the rank that it is for, plus one.
  constexpr std::int64_t& there(int rank, int chunk, int kind, int microbatch) {
    return there_[(std::int64_t{2} * (rank * v + chunk) + kind) * m + microbatch];
  }

  placement where_;
  const job_table_view& table_;
  detail::link_clocks links_;
  job_sink* out_;
  scratch<std::int32_t> done_;     // of each (rank, chunk, kind)
  scratch<std::int64_t> there_;    // of each (rank, chunk, F or I, micro-batch), plus one
  scratch<std::int32_t> pending_;  // per rank: chunks of the backwards for the weights
};

}  // namespace stretto::schedule
