#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_orders.hpp"

namespace stretto::schedule {

//! When backwards for the weights run that nothing forces to.
struct v_fill_rules {
  int share = 1;  //!< in a gap that holds at least 1 / this of one
  //! Else at the latest before the forward that they stand before in the slots, so that no rank
  //! keeps more than there.
  bool to_the_limit = false;
};

//! A job as it ran: when its input was there (0: needs none), start, end.
struct v_moment {
  std::int64_t input = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int32_t microbatch = 0;
};

//! When forwards and backwards for the input ran, by rank and place in its order.
struct v_trace {
  constexpr v_trace(const shape& sizes, const v_orders& slots)
      : p(sizes.ranks),
        m(sizes.microbatches),
        stride(slots.stride()),
        moments(stride * p),
        places(std::int64_t{v_weight_upper} * p * m) {}
  constexpr ~v_trace() = default;  // nvcc needs it written

  constexpr std::int32_t& place(int stream, int rank, int microbatch) {
    return places[(std::int64_t{stream} * p + rank) * m + microbatch];
  }

  int p, m;
  std::int64_t stride;  // of a rank
  scratch<v_moment> moments;
  scratch<std::int32_t> places;
};

//! Writes the lists of a V schedule with split backwards from the order of its slots, for the costs
//! at hand. Forwards and backwards for the input keep that order. A backward for the weights, the
//! oldest of its rank first, runs in gaps by the rules, where a rank's limit leaves no room for the
//! next job, and at the end.
template <class Table = job_table_view>
class v_fill {
 public:
  //! @param out    where the lists go; none: only measures
  //! @param trace  where it tells when jobs ran
  constexpr v_fill(const shape& sizes, const Table& table, const v_orders& slots, job_sink* out,
                   const v_fill_rules& rules = {}, v_trace* trace = nullptr)
      : p_(sizes.ranks),
        m_(sizes.microbatches),
        hop_(table.communication),
        rules_(rules),
        out_(out),
        trace_(trace),
        ring_(ring_for(trace != nullptr || slots.most() > m_ ? m_ : slots.most())),
        ready_(std::int64_t{v_weight_upper} * p_ * ring_),
        ranks_(p_),
        queue_(p_) {
    for (int rank = 0; rank < p_; ++rank) {
      rank_state& at = ranks_[rank];
      for (int stream = 0; stream < v_streams; ++stream) {
        const job_cost& cost = table.at(rank, v_chunk(stream), v_kind(stream, false));
        at.time[stream] = cost.time;
        at.change[stream] = cost.change;
        at.need[stream] = cost.peak > cost.change ? cost.peak : cost.change;
      }
      at.level = table.base_of(rank);
      at.limit = table.limit_of(rank);
      at.order = slots.order(rank);
      at.steps = slots.count(rank);
      wake(rank);
    }
    while (waiting_ > 0 && fits_) {
      const int rank = queue_[head_];
      head_ = head_ + 1 == p_ ? 0 : head_ + 1;
      --waiting_;
      ranks_[rank].queued = false;
      advance(rank);
    }
    for (int rank = 0; rank < p_; ++rank)
      if (ranks_[rank].cursor < ranks_[rank].steps) fits_ = false;
  }

  //! Whether every job has run, within the limits.
  constexpr bool fits() const { return fits_; }
  constexpr std::int64_t makespan() const { return ranks_[last()].clock; }
  //! From a rank's first job to its last, the longest.
  constexpr std::int64_t span() const {
    const rank_state& at = ranks_[longest()];
    return at.clock - at.start;
  }
  //! The rank that is done last, and that of the longest span.
  constexpr int last() const {
    int found = 0;
    for (int rank = 1; rank < p_; ++rank)
      if (ranks_[rank].clock > ranks_[found].clock) found = rank;
    return found;
  }
  constexpr int longest() const {
    int found = 0;
    for (int rank = 1; rank < p_; ++rank)
      if (ranks_[rank].clock - ranks_[rank].start > ranks_[found].clock - ranks_[found].start)
        found = rank;
    return found;
  }

 private:
  struct rank_state {
    std::int64_t time[v_streams];
    std::int64_t change[v_streams];
    std::int64_t need[v_streams];  // above the level at the job's start
    std::int64_t level;            // of memory
    std::int64_t limit;
    std::int64_t clock;
    std::int64_t start;  // of its first job
    const v_placed* order;
    std::int32_t steps;
    std::int32_t cursor;   // in its order
    std::int32_t oldest;   // in its order: where to look for the next backward for the weights
    std::int32_t pending;  // backwards for the weights that could run
    std::int32_t due;      // less those that have run: that must before the next forward
    std::int32_t done[v_streams];
    bool queued;
  };

  constexpr void wake(int rank) {
    if (ranks_[rank].queued) return;
    ranks_[rank].queued = true;
    const int tail = head_ + waiting_++;
    queue_[tail < p_ ? tail : tail - p_] = rank;
  }
  //! Inputs that wait for a rank are of micro-batches that it or its neighbour keeps.
  static constexpr std::int64_t ring_for(int most) {
    std::int64_t size = 1;
    while (size < most) size *= 2;
    return size;
  }
  constexpr std::int64_t& ready(int stream, int rank, int microbatch) {
    return ready_[(std::int64_t{stream} * p_ + rank) * ring_ + (microbatch & (ring_ - 1))];
  }

  //! Runs the rank's jobs as far as their inputs are known.
  constexpr void advance(int rank) {
    rank_state& at = ranks_[rank];
    for (; at.cursor < at.steps; ++at.cursor) {
      const int stream = at.order[at.cursor].stream();
      if (stream >= v_weight_upper) {
        ++at.due;
        continue;
      }
      std::int64_t input = 0;
      if (stream != v_down || rank > 0) {
        std::int64_t& known = ready(stream, rank, at.done[stream]);
        if (known == 0) return;
        input = known - 1;
        known = 0;
      }
      if (stream < v_back_down && !rules_.to_the_limit)
        while (at.due > 0) run_weight(rank, at);
      while (at.pending > 0 && (at.time[next_weight(at)] <= rules_.share * (input - at.clock) ||
                                at.level + at.need[stream] > at.limit))
        run_weight(rank, at);
      if (input > at.clock) at.clock = input;
      if (at.cursor == 0) at.start = at.clock;
      if (stream >= v_back_down) ++at.pending;
      const std::int64_t start = at.clock;
      const int microbatch = run(rank, at, stream);
      if (trace_ != nullptr) {
        trace_->moments[trace_->stride * rank + at.cursor] = {input, start, at.clock, microbatch};
        trace_->place(stream, rank, microbatch) = at.cursor;
      }
      // Down and up the V a stream goes on until it turns, and becomes the next.
      const bool down = stream == v_down || stream == v_back_down;
      const int there = down ? rank + 1 : rank - 1;
      if (there >= 0 && there < p_) {
        ready(stream, there, microbatch) = at.clock + hop_ + 1;
        wake(there);
      } else if (stream + 1 < v_weight_upper) {
        ready(stream + 1, rank, microbatch) = at.clock + 1;
      }
    }
    while (at.pending > 0) run_weight(rank, at);
  }

  constexpr int next_weight(rank_state& at) const {
    int stream = at.order[at.oldest].stream();
    while (stream < v_back_down || stream >= v_weight_upper)
      stream = at.order[++at.oldest].stream();
    return stream + (v_weight_upper - v_back_down);
  }
  constexpr void run_weight(int rank, rank_state& at) {
    const int stream = next_weight(at);
    ++at.oldest;
    --at.pending;
    --at.due;
    run(rank, at, stream);
  }
  constexpr int run(int rank, rank_state& at, int stream) {
    const int microbatch = at.done[stream]++;
    at.clock += at.time[stream];
    if (at.level + at.need[stream] > at.limit) fits_ = false;
    at.level += at.change[stream];
    if (out_ == nullptr) return microbatch;
    const int stage = v_chunk(stream) == 0 ? rank : 2 * p_ - 1 - rank;
    out_->push(rank, {stage, microbatch, 0, v_kind(stream, false)});
    return microbatch;
  }

  int p_, m_;
  std::int64_t hop_;
  v_fill_rules rules_;
  job_sink* out_;
  v_trace* trace_;
  std::int64_t ring_;            // micro-batches of which inputs are remembered, a power of two
  scratch<std::int64_t> ready_;  // when a (stream, rank, micro-batch)'s input is there, plus one
  scratch<rank_state> ranks_;
  scratch<std::int32_t> queue_;
  int head_ = 0;
  int waiting_ = 0;
  bool fits_ = true;
};

}  // namespace stretto::schedule
