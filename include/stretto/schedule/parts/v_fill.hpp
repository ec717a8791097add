#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_fill_state.hpp"
#include "stretto/schedule/parts/v_history.hpp"
#include "stretto/schedule/parts/v_orders.hpp"

namespace stretto::schedule {

//! When backwards for the weights run that nothing forces to.
struct v_fill_rules {
  int share = 1;  //!< in a gap that holds at least 1 / this of one
  //! Else at the latest before the forward that they stand before in the slots, so that no rank
  //! keeps more than there.
  bool to_the_limit = false;
  bool in_turn = false;     //!< at the latest before a backward that they stand before, too
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
    history.set_start(state_.ranks.data());
  }
  constexpr ~v_fill() = default;  // nvcc needs it written

  //! From a mark of the history, before which nothing has changed.
  constexpr void replay(int mark) {
    history_->go_on(mark);
    state_.go_on(*history_, mark);
    head_ = waiting_ = 0;
    for (int rank = 0; rank < p_; ++rank) wake(rank);
    until_mark_ = history_->until_next(state_.ranks.data());
    run();
  }

  //! Whether every job has run, within the limits.
  constexpr bool fits() const { return state_.fits; }
  constexpr std::int64_t makespan() const { return state_.ranks[last()].clock; }
  //! From a rank's first job to its last, the longest.
  constexpr std::int64_t span() const {
    const v_rank_state& at = state_.ranks[longest()];
    return at.clock - at.start;
  }
  //! Most memory in use on any rank.
  constexpr std::int64_t most() const {
    std::int64_t found = 0;
    for (int rank = 0; rank < p_; ++rank)
      if (state_.ranks[rank].most > found) found = state_.ranks[rank].most;
    return found;
  }
  //! The rank that is done last, and that of the longest span.
  constexpr int last() const { return state_.last(); }
  constexpr int longest() const { return state_.longest(); }

 private:
  constexpr v_fill(const shape& sizes, const Table& table, const v_orders& slots, job_sink* out,
                   const v_fill_rules& rules, v_history* history, int most)
      : p_(sizes.ranks),
        hop_(table.hops()),
        rules_(rules),
        history_(history),
        state_(sizes, table, slots, most, rules.regardless, out),
        queue_(p_) {
    for (int rank = 0; rank < p_; ++rank) wake(rank);
  }

  constexpr void run() {
    while (waiting_ > 0 && state_.fits) {
      const int rank = queue_[head_];
      head_ = head_ + 1 == p_ ? 0 : head_ + 1;
      --waiting_;
      v_rank_state& at = state_.ranks[rank];
      at.queued = false;
      const int before = at.cursor;
      advance(rank, at);
      if (history_ == nullptr) continue;
      until_mark_ -= at.cursor - before;
      if (until_mark_ > 0 || !state_.fits) continue;
      history_->set_mark(state_.ranks.data());
      until_mark_ = history_->until_next(state_.ranks.data());
    }
    for (int rank = 0; rank < p_; ++rank)
      if (state_.ranks[rank].cursor < state_.ranks[rank].steps) state_.fits = false;
  }
  constexpr void wake(int rank) {
    if (state_.ranks[rank].queued) return;
    state_.ranks[rank].queued = true;
    const int tail = head_ + waiting_++;
    queue_[tail < p_ ? tail : tail - p_] = rank;
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
        std::int64_t& known = state_.ready(stream, rank, at.done[stream]);
        if (known == 0) return;
        input = known - 1;
        known = 0;
      }
      if (rules_.in_turn || (stream < v_back_down && !rules_.to_the_limit))
        while (at.due > 0) state_.run_weight(rank, at);
      while (at.pending > 0 &&
             (at.time[state_.next_weight(at)] <= rules_.share * (input - at.clock) ||
              at.level + at.need[stream] > at.limit))
        state_.run_weight(rank, at);
      if (input > at.clock) at.clock = input;
      if (at.cursor == 0) at.start = at.clock;
      if (stream >= v_back_down) ++at.pending;
      const std::int64_t start = at.clock;
      const int microbatch = state_.run(rank, at, stream);
      if (history_ != nullptr)
        history_->tell(rank, at.cursor, stream, {input, start, at.clock, microbatch});
      // Down and up the V a stream goes on until it turns, and becomes the next.
      const bool down = stream == v_down || stream == v_back_down;
      const int there = down ? rank + 1 : rank - 1;
      if (there >= 0 && there < p_) {
        state_.ready(stream, there, microbatch) = at.clock + hop_(rank, there) + 1;
        wake(there);
      } else if (stream + 1 < v_weight_upper) {
        state_.ready(stream + 1, rank, microbatch) = at.clock + 1;
      }
    }
    while (at.pending > 0) state_.run_weight(rank, at);
  }

  int p_;
  hop_times hop_;
  v_fill_rules rules_;
  v_history* history_;
  v_fill_state state_;
  scratch<std::int32_t> queue_;  // ranks of which an input has become known
  int head_ = 0;
  int waiting_ = 0;
  std::int64_t until_mark_ = 0;  // jobs
};

}  // namespace stretto::schedule
