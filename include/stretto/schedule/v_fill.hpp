#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/schedule/v_block.hpp"
#include "stretto/schedule/v_compaction.hpp"

namespace stretto::schedule {

//! Writes the lists of a V schedule with split backwards from the order of its slots, for the costs
//! at hand. Forwards and backwards for the input keep that order. A backward for the weights, the
//! oldest of its rank first, runs where the rank would wait for longer than it takes, and at the
//! latest before the forward that it stands before in the slots: so no rank keeps more than there.
//! It runs earlier still where a rank's limit leaves no room for the next job.
template <class Table = job_table_view>
class v_fill {
 public:
  //! @param out  where the lists go; none: only measures
  constexpr v_fill(const shape& sizes, const Table& table, const v_compaction<>& slots,
                   job_sink* out)
      : p_(sizes.ranks),
        m_(sizes.microbatches),
        hop_(table.communication),
        out_(out),
        ring_(ring_for(slots.most())),
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
    while (waiting_ > 0) {
      const int rank = queue_[head_];
      head_ = head_ + 1 == p_ ? 0 : head_ + 1;
      --waiting_;
      ranks_[rank].queued = false;
      advance(rank);
    }
  }

  constexpr bool fits() const { return fits_; }  //!< the limits
  constexpr std::int64_t makespan() const {
    std::int64_t most = 0;
    for (int rank = 0; rank < p_; ++rank)
      if (ranks_[rank].clock > most) most = ranks_[rank].clock;
    return most;
  }
  //! From a rank's first job to its last, the longest.
  constexpr std::int64_t span() const {
    std::int64_t most = 0;
    for (int rank = 0; rank < p_; ++rank)
      if (ranks_[rank].clock - ranks_[rank].start > most)
        most = ranks_[rank].clock - ranks_[rank].start;
    return most;
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
      if (stream < v_back_down)
        while (at.due > 0) run_weight(rank, at);
      while (at.pending > 0 && (at.clock + at.time[next_weight(at)] <= input ||
                                at.need[stream] > at.limit - at.level))
        run_weight(rank, at);
      if (input > at.clock) at.clock = input;
      if (at.cursor == 0) at.start = at.clock;
      if (stream >= v_back_down) ++at.pending;
      const int microbatch = run(rank, at, stream);
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
    if (at.need[stream] > at.limit - at.level) fits_ = false;
    at.level += at.change[stream];
    if (out_ == nullptr) return microbatch;
    const int stage = v_chunk(stream) == 0 ? rank : 2 * p_ - 1 - rank;
    out_->push(rank, {stage, microbatch, 0, v_kind(stream, false)});
    return microbatch;
  }

  int p_, m_;
  std::int64_t hop_;
  job_sink* out_;
  std::int64_t ring_;            // micro-batches of which inputs are remembered, a power of two
  scratch<std::int64_t> ready_;  // when a (stream, rank, micro-batch)'s input is there, plus one
  scratch<rank_state> ranks_;
  scratch<std::int32_t> queue_;
  int head_ = 0;
  int waiting_ = 0;
  bool fits_ = true;
};

}  // namespace stretto::schedule
