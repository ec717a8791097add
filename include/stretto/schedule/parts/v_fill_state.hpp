#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_history.hpp"
#include "stretto/schedule/parts/v_orders.hpp"

namespace stretto::schedule {

//! Where the replay of a V's order stands: what has run, when and in which memory, and when the
//! inputs are there that are known and not yet used.
class v_fill_state {
 public:
  //! @param most        activations of a chunk that a rank may keep
  //! @param regardless  what exceeds a rank's limit runs all the same
  //! @param out         where the lists go; none: only measures
  template <class Table>
  constexpr v_fill_state(const shape& sizes, const Table& table, const v_orders& slots, int most,
                         bool regardless, job_sink* out)
      : ranks(sizes.ranks),
        p_(sizes.ranks),
        hop_(table.hops()),
        ring_(ring_for(most > sizes.microbatches ? sizes.microbatches : most)),
        ready_(std::int64_t{v_weight_upper} * p_ * ring_),
        regardless_(regardless),
        out_(out) {
    for (int rank = 0; rank < p_; ++rank) {
      v_rank_state& at = ranks[rank];
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
    }
  }
  constexpr ~v_fill_state() = default;  // nvcc needs it written

  //! Goes on from a mark of the history, before which nothing has changed.
  constexpr void go_on(const v_history& history, int mark) {
    for (std::int64_t at = 0; !fits && at < ready_.size(); ++at) ready_[at] = 0;
    fits = true;
    for (int rank = 0; rank < p_; ++rank) {
      ranks[rank] = history.mark(mark)[rank];
      ranks[rank].queued = false;
    }
    for (int rank = 0; rank < p_; ++rank) know_again(history, rank, mark);
  }

  //! When the input is there, plus one; 0: that is not known.
  constexpr std::int64_t& ready(int stream, int rank, int microbatch) {
    return ready_[(std::int64_t{stream} * p_ + rank) * ring_ + (microbatch & (ring_ - 1))];
  }

  //! The stream of the rank's oldest backward for the weights that could run.
  constexpr int next_weight(v_rank_state& at) const {
    int stream = at.order[at.oldest].stream();
    while (stream < v_back_down || stream >= v_weight_upper)
      stream = at.order[++at.oldest].stream();
    return stream + (v_weight_upper - v_back_down);
  }
  //! Runs that one.
  constexpr void run_weight(int rank, v_rank_state& at) {
    const int stream = next_weight(at);
    ++at.oldest;
    --at.pending;
    --at.due;
    run(rank, at, stream);
  }
  //! Runs the stream's next job, from the rank's clock on.
  //! @return its micro-batch
  constexpr int run(int rank, v_rank_state& at, int stream) {
    const int microbatch = at.done[stream]++;
    at.clock += at.time[stream];
    const std::int64_t used = at.level + at.need[stream];
    if (used > at.limit && !regardless_) fits = false;
    if (used > at.most) at.most = used;
    at.level += at.change[stream];
    if (out_ == nullptr) return microbatch;
    const int stage = v_chunk(stream) == 0 ? rank : 2 * p_ - 1 - rank;
    out_->push(rank, {stage, microbatch, 0, v_kind(stream, false)});
    return microbatch;
  }

  //! The rank that is done last, and that of the longest span.
  constexpr int last() const {
    int found = 0;
    for (int rank = 1; rank < p_; ++rank)
      if (ranks[rank].clock > ranks[found].clock) found = rank;
    return found;
  }
  constexpr int longest() const {
    int found = 0;
    for (int rank = 1; rank < p_; ++rank)
      if (ranks[rank].clock - ranks[rank].start > ranks[found].clock - ranks[found].start)
        found = rank;
    return found;
  }

  scratch<v_rank_state> ranks;
  bool fits = true;  //!< what has run, within the limits

 private:
  //! Inputs that wait for a rank are of micro-batches that it or its neighbour keeps.
  static constexpr std::int64_t ring_for(int most) {
    std::int64_t size = 1;
    while (size < most) size *= 2;
    return size;
  }
  //! Inputs that the rank has not used at the mark from which a replay goes on.
  constexpr void know_again(const v_history& history, int rank, int mark) {
    for (int stream = 0; stream < v_weight_upper; ++stream) {
      if (stream == v_down && rank == 0) continue;
      const v_source from(stream, rank, p_);
      const std::int64_t hop = from.turns ? 0 : hop_(from.rank, rank);
      const int sent = history.mark(mark)[from.rank].done[from.stream];
      for (int microbatch = ranks[rank].done[stream]; microbatch < sent; ++microbatch)
        ready(stream, rank, microbatch) =
            history.moment(from.rank, history.place(from.stream, from.rank, microbatch)).end + hop +
            1;
    }
  }

  int p_;
  hop_times hop_;
  std::int64_t ring_;            // micro-batches of which inputs are remembered, a power of two
  scratch<std::int64_t> ready_;  // of each (stream, rank, micro-batch)
  bool regardless_;
  job_sink* out_;
};

}  // namespace stretto::schedule
