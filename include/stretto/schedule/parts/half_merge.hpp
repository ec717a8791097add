#pragma once

#include <cstdint>
#include <limits>

#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/parts/half_places.hpp"

namespace stretto::schedule {

//! Makes whole backwards of halves, once over given lists. A whole one takes less time than its
//! halves one after the other; but what it gives the stage before leaves at its end. So two halves
//! are joined where everything that waits for either can still run in time: no path through the
//! step becomes longer than `length`, or than it was. Written for compilers, which count
//! statements: what is asked more than once is found once.
class half_merge {
 public:
  static constexpr std::int64_t any_length = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t no_length = -1;  //!< joins none

  //! Which halves are joined.
  struct rules {
    std::int64_t length = any_length;  //!< that no path is to be longer than, unless it was
    //! A backward for the weights behind another's input half may change places with that one's
    //! own, if both take the same.
    bool exchange = true;
    bool keeps_limits = true;  //!< where there are any, none that would keep more than its halves
  };

  //! What a step with joined halves is like.
  struct result {
    std::int64_t makespan = 0;
    std::int64_t span = 0;
    int joined = 0;
    bool fits = true;  //!< within the limits, pairs aside
  };

  //! @param lists  compute jobs; where one lacks its other half, or they do not come to an end,
  //!               nothing is joined
  constexpr half_merge(const shape& sizes, const placement& where, const job_table_view& table,
                       const job_rows& lists)
      : table_(table), lists_(lists), halves_(sizes, where, table, lists), ranks_(lists.ranks) {}
  constexpr ~half_merge() = default;  // nvcc needs it written

  //! Whether the lists come to an end.
  constexpr bool live() const { return halves_.live; }
  //! Of the lists as they are.
  constexpr std::int64_t makespan() const { return halves_.makespan; }

  //! Joins halves of the lists as they were given.
  //! @param out  where the lists go; none: only measures
  constexpr result run(const rules& by, job_sink* out) {
    result made;
    for (int rank = 0; rank < lists_.ranks; ++rank)
      ranks_[rank] = {.level = table_.base_of(rank), .limit = table_.limit_of(rank)};
    ++run_;
    const std::int64_t count = halves_.turns.size();
    for (std::int64_t turn = 0; turn < count; ++turn) {
      const std::int32_t at = halves_.turns[turn];
      const half_place& here = halves_.places[at];
      const std::int32_t runs = here.run == run_ ? here.runs : at;
      if (runs < 0) continue;
      rank_state& rank = ranks_[here.rank];
      const job_cost* takes = here.cost;  // of those that change places it is the same
      bool joined = false;
      if (!here.second) {
        if (here.arrives > rank.clock) rank.clock = here.arrives;
        if (here.paired && halves_.places[at + 1].arrives > rank.clock)
          rank.clock = halves_.places[at + 1].arrives;
        if (rank.first < 0) rank.first = rank.clock;
        joined = here.splits && joins(at, by);
        if (joined) takes = here.whole(), ++made.joined;
        rank.clock += joined ? takes->time : here.time;
      }
      if (rank.limit != unlimited && rank.level + need(*takes) > rank.limit) made.fits = false;
      rank.level += takes->change;
      if (here.to >= 0) halves_.places[here.to].arrives = rank.clock + here.hop;
      if (out == nullptr) continue;
      job work = lists_.items[runs];
      if (joined) work.kind = job_kind::backward;
      out->push(here.rank, work);
    }
    for (int rank = 0; rank < lists_.ranks; ++rank) {
      const rank_state& here = ranks_[rank];
      if (here.clock > made.makespan) made.makespan = here.clock;
      if (here.first >= 0 && here.clock - here.first > made.span)
        made.span = here.clock - here.first;
    }
    return made;
  }

 private:
  struct rank_state {
    std::int64_t level = 0;  // of memory
    std::int64_t clock = 0;
    std::int64_t first = -1;  // start of its first job
    std::int64_t limit = 0;   // of memory
  };

  static constexpr std::int64_t need(const job_cost& takes) {
    return takes.peak > takes.change ? takes.peak : takes.change;
  }

  //! What this run says of the place.
  constexpr half_place& told(std::int32_t at) {
    half_place& here = halves_.places[at];
    if (here.run != run_) here.run = run_, here.runs = at, here.own = here.half;
    return here;
  }
  //! Whether the input half there is joined with its other half, which then runs no more.
  constexpr bool joins(std::int32_t at, const rules& by) {
    if (by.length == no_length) return false;
    if (!halves_.places[at + 1].weight) return false;
    half_place& next = told(at + 1);
    const half_place& input = told(at);
    const bool other = input.own != at + 1;
    if (other) {
      const half_place& own = halves_.places[input.own];
      if (!by.exchange || !(*next.cost == *own.cost) || halves_.places[next.runs].half < 0)
        return false;
    }
    const rank_state& rank = ranks_[input.rank];
    if (by.keeps_limits && rank.limit != unlimited && !within_limit(rank, input, next))
      return false;
    if (by.length != any_length && !pays(input, next, at, by.length)) return false;
    if (other) {
      told(input.own).runs = next.runs;
      told(halves_.places[next.runs].half).own = input.own;
    }
    next.runs = -1;
    return true;
  }
  static constexpr bool within_limit(const rank_state& rank, const half_place& input,
                                     const half_place& weight) {
    const job_cost& both = *input.whole();
    return both.change <= input.cost->change + weight.cost->change &&
           rank.level + need(both) <= rank.limit;
  }
  constexpr bool pays(const half_place& input, const half_place& weight, std::int32_t at,
                      std::int64_t length) const {
    const rank_state& rank = ranks_[input.rank];
    const job_cost& both = *input.whole();
    const std::int64_t split = input.time + weight.time;
    if (both.time > split) return false;
    const std::int64_t next = weight.last ? 0 : halves_.places[at + 2].tail;
    const std::int64_t sent = halves_.sent_tail(input);
    const std::int64_t joined = rank.clock + both.time + (next > sent ? next : sent);
    if (joined <= length) return true;
    const std::int64_t halves =
        rank.clock + (split + next > input.time + sent ? split + next : input.time + sent);
    return joined <= halves;
  }

  job_table_view table_;
  job_rows lists_;
  half_places halves_;
  scratch<rank_state> ranks_;
  int run_ = 0;
};

}  // namespace stretto::schedule
