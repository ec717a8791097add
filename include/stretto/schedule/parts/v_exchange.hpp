#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/schedule/parts/v_fill.hpp"
#include "stretto/schedule/parts/v_history.hpp"
#include "stretto/schedule/parts/v_orders.hpp"
#include "stretto/schedule/variants.hpp"

namespace stretto::schedule {

//! Makes the order of a V schedule better for the costs at hand. A job of the critical path that
//! waits for its rank, and whose input is there before the job ahead of it ends, changes places
//! with that: first all such pairs at once, then one after the other, each followed by a few of
//! those that it makes critical. What is no shorter is taken back.
class v_exchange {
 public:
  constexpr v_exchange(const shape& sizes, const job_table_view& table, v_orders& slots,
                       objective_kind objective, const v_fill_rules& rules)
      : sizes_(sizes),
        slots_(slots),
        objective_(objective),
        history_(sizes, slots),
        fill_(sizes, table, slots, rules, history_),
        critical_(std::int64_t{v_weight_upper} * sizes.ranks * sizes.microbatches),
        made_(critical_.size() + followers),
        next_(critical_.size()) {
    best_ = measure(0);
  }
  constexpr ~v_exchange() = default;  // nvcc needs it written

  //! @param tries     replays of the step, at most
  //! @param possible  what no order can be better than
  constexpr void run(int tries, const variant_score& possible) {
    tries_ = tries;
    if (!best_.fits) return;
    if (possible.is_better_than(best_)) adopt();
    int level = 0;  // exchanges in a row that have made it no shorter
    while (tries_ > 0 && possible.is_better_than(best_)) {
      const variant_score before = best_;
      bool found = pairs_ > 1 && attempt(0, pairs_, 0, level < patience);
      for (int one = 0; one < pairs_ && !found && tries_ > 0; ++one)
        found = attempt(one, 1, followers, level < patience);
      if (!found) return;
      level = best_ == before ? level + 1 : 0;
    }
  }
  constexpr const variant_score& best() const { return best_; }
  //! Replays that were not needed.
  constexpr int left() const { return tries_; }

 private:
  static constexpr int followers = 4;
  static constexpr int patience = 6;

  //! Two jobs of a rank's order, all between them backwards for the weights.
  struct pair {
    std::int32_t rank = 0;
    std::int32_t first = 0;
    std::int32_t second = 0;

    constexpr bool operator==(const pair&) const = default;
  };

  //! With the first so many of the exchanges made.
  constexpr variant_score measure(int made) {
    --tries_;
    int mark = history_.marks() - 1;
    for (int one = 0; one < made; ++one)
      while (history_.mark(mark)[made_[one].rank].cursor > made_[one].first) --mark;
    fill_.replay(mark);
    if (!fill_.fits()) return {};
    last_ = objective_ == objective_kind::flush ? fill_.last() : fill_.longest();
    return score_of(objective_, fill_.makespan(), fill_.span());
  }
  //! Keeps the order that was measured last.
  constexpr void adopt() {
    history_.keep(slots_);
    pairs_ = find_pairs(critical_);
  }

  //! Brings the second job before the first, or back.
  constexpr void exchange(const pair& of, bool back) {
    v_placed* const order = slots_.order(of.rank);
    const int step = back ? 1 : -1;
    const int from = back ? of.first : of.second;
    const int to = back ? of.second : of.first;
    const v_placed moved = order[from];
    for (int at = from; at != to; at += step) order[at] = order[at + step];
    order[to] = moved;
  }

  //! Exchanges some of the critical pairs, then up to `more` of those that become critical.
  //! @return whether the step is shorter, or may be as long and is; else all is as it was
  constexpr bool attempt(int first, int count, int more, bool as_long) {
    int made = 0;
    for (; made < count; ++made) exchange(made_[made] = critical_[first + made], false);
    for (;;) {
      const variant_score score = measure(made);
      const bool same = score.first == best_.first;
      if (score.fits && ((as_long && same) || score.is_better_than(best_))) {
        best_ = score;
        adopt();
        return true;
      }
      if (!score.fits || more-- == 0 || tries_ <= 0) break;
      const int found = find_pairs(next_);
      int other = 0;
      while (other < found && is_made(next_[other], made)) ++other;
      if (other == found) break;
      exchange(made_[made++] = next_[other], false);
    }
    while (made > 0) exchange(made_[--made], true);
    return false;
  }
  constexpr bool is_made(const pair& of, int made) const {
    for (int at = 0; at < made; ++at)
      if (made_[at] == of) return true;
    return false;
  }

  //! The pairs on the critical path of what was measured last, from its end to its start.
  constexpr int find_pairs(scratch<pair>& pairs) {
    int count = 0;
    int rank = last_;
    int at = before(rank, slots_.count(rank));
    while (at >= 0) {
      const v_moment& job = history_.moment(rank, at);
      const int stream = slots_.order(rank)[at].stream();
      if (job.input == job.start && (stream != v_down || rank > 0)) {
        const v_source from(stream, rank, sizes_.ranks);
        rank = from.rank;
        at = history_.place(from.stream, rank, job.microbatch);
        continue;
      }
      const int ahead = before(rank, at);
      if (ahead >= 0 && job.input < history_.moment(rank, ahead).end &&
          slots_.order(rank)[ahead].stream() != stream)
        pairs[count++] = {rank, ahead, at};
      at = ahead;
    }
    return count;
  }
  //! The job before that is no backward for the weights; -1: there is none.
  constexpr int before(int rank, int at) const {
    const v_placed* const order = slots_.order(rank);
    do --at;
    while (at >= 0 && order[at].stream() >= v_weight_upper);
    return at;
  }

  const shape& sizes_;
  v_orders& slots_;
  objective_kind objective_;
  v_history history_;
  v_fill<> fill_;
  scratch<pair> critical_;
  scratch<pair> made_;
  scratch<pair> next_;
  variant_score best_{};
  int pairs_ = 0;
  int tries_ = 0;
  int last_ = 0;  // the rank that is done last
};

}  // namespace stretto::schedule
