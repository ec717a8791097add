#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_history.hpp"
#include "stretto/schedule/parts/v_orders.hpp"

namespace stretto::schedule {

//! When backwards for the weights run that nothing forces to.
struct v_fill_rules {
  int share = 1;  //!< in a gap that holds at least 1 / this of one
  //! Else at the latest before the forward that they stand before in the slots, so that no rank
  //! keeps more than there.
  bool to_the_limit = false;
  bool regardless = false;  //!< what exceeds a rank's limit runs all the same
};

//! Writes the lists of a V schedule with split backwards from the order of its slots, for the costs
//! at hand. Forwards and backwards for the input keep that order. A backward for the weights, the
//! oldest of its rank first, runs in gaps by the rules, where a rank's limit leaves no room for the
//! next job, and at the end.
template <class Table = job_table_view>
class v_fill {
 public:
  //! @param out      where the lists go; none: only measures
  //! @param changed  the order is no longer that for which slots.most() holds
  constexpr v_fill(const shape& sizes, const Table& table, const v_orders& slots, job_sink* out,
                   const v_fill_rules& rules = {}, bool changed = false)
      : v_fill(sizes, table, slots, out, rules, nullptr,
               changed ? sizes.microbatches : slots.most()) {
    run();
  }
  //! To be replayed, again and again while the order changes.
  constexpr v_fill(const shape& sizes, const Table& table, const v_orders& slots,
                   const v_fill_rules& rules, v_history& history)
      : v_fill(sizes, table, slots, nullptr, rules, &history, sizes.microbatches) {
    history.set_start(ranks_.data());
  }
  constexpr ~v_fill() = default;  // nvcc needs it written

  //! From a mark of the history, before which nothing has changed.
  constexpr void replay(int mark) {
    for (std::int64_t at = 0; !fits_ && at < ready_.size(); ++at) ready_[at] = 0;
    fits_ = true;
    history_->go_on(mark);
    for (int rank = 0; rank < p_; ++rank) {
      ranks_[rank] = history_->mark(mark)[rank];
      ranks_[rank].queued = false;
    }
    head_ = waiting_ = 0;
    for (int rank = 0; rank < p_; ++rank) {
      know_again(rank, mark);
      wake(rank);
    }
    until_mark_ = history_->until_next(ranks_.data());
    run();
  }

  //! Whether every job has run, within the limits.
  constexpr bool fits() const { return fits_; }
  constexpr std::int64_t makespan() const { return ranks_[last()].clock; }
  //! From a rank's first job to its last, the longest.
  constexpr std::int64_t span() const {
    const v_rank_state& at = ranks_[longest()];
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
  constexpr v_fill(const shape& sizes, const Table& table, const v_orders& slots, job_sink* out,
                   const v_fill_rules& rules, v_history* history, int most)
      : p_(sizes.ranks),
        m_(sizes.microbatches),
        hop_(table.communication),
        rules_(rules),
        out_(out),
        history_(history),
        ring_(ring_for(most > m_ ? m_ : most)),
        ready_(std::int64_t{v_weight_upper} * p_ * ring_),
        ranks_(p_),
        queue_(p_) {
    for (int rank = 0; rank < p_; ++rank) {
      v_rank_state& at = ranks_[rank];
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
  }

  constexpr void run() {
    while (waiting_ > 0 && fits_) {
      const int rank = queue_[head_];
      head_ = head_ + 1 == p_ ? 0 : head_ + 1;
      --waiting_;
      v_rank_state& at = ranks_[rank];
      at.queued = false;
      const int before = at.cursor;
      advance(rank, at);
      if (history_ == nullptr) continue;
      until_mark_ -= at.cursor - before;
      if (until_mark_ > 0 || !fits_) continue;
      history_->set_mark(ranks_.data());
      until_mark_ = history_->until_next(ranks_.data());
    }
    for (int rank = 0; rank < p_; ++rank)
      if (ranks_[rank].cursor < ranks_[rank].steps) fits_ = false;
  }

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

  //! Inputs that the rank has not used at the mark from which a replay goes on.
  constexpr void know_again(int rank, int mark) {
    for (int stream = 0; stream < v_weight_upper; ++stream) {
      if (stream == v_down && rank == 0) continue;
      const v_source from(stream, rank, p_);
      const std::int64_t hop = from.turns ? 0 : hop_;
      const int sent = history_->mark(mark)[from.rank].done[from.stream];
      for (int microbatch = ranks_[rank].done[stream]; microbatch < sent; ++microbatch)
        ready(stream, rank, microbatch) =
            history_->moment(from.rank, history_->place(from.stream, from.rank, microbatch)).end +
            hop + 1;
    }
  }

  //! Runs the rank's jobs as far as their inputs are known.
  constexpr void advance(int rank, v_rank_state& at) {
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
      if (history_ != nullptr)
        history_->tell(rank, at.cursor, stream, {input, start, at.clock, microbatch});
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

  constexpr int next_weight(v_rank_state& at) const {
    int stream = at.order[at.oldest].stream();
    while (stream < v_back_down || stream >= v_weight_upper)
      stream = at.order[++at.oldest].stream();
    return stream + (v_weight_upper - v_back_down);
  }
  constexpr void run_weight(int rank, v_rank_state& at) {
    const int stream = next_weight(at);
    ++at.oldest;
    --at.pending;
    --at.due;
    run(rank, at, stream);
  }
  constexpr int run(int rank, v_rank_state& at, int stream) {
    const int microbatch = at.done[stream]++;
    at.clock += at.time[stream];
    if (at.level + at.need[stream] > at.limit && !rules_.regardless) fits_ = false;
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
  v_history* history_;
  std::int64_t ring_;            // micro-batches of which inputs are remembered, a power of two
  scratch<std::int64_t> ready_;  // when a (stream, rank, micro-batch)'s input is there, plus one
  scratch<v_rank_state> ranks_;
  scratch<std::int32_t> queue_;
  int head_ = 0;
  int waiting_ = 0;
  std::int64_t until_mark_ = 0;  // jobs
  bool fits_ = true;
};

}  // namespace stretto::schedule
