#pragma once

#include <cstdint>
#include <limits>

#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/replay.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"

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
      : where_(where),
        table_(table),
        lists_(lists),
        turns_(lists.total()),
        places_(std::int64_t{lists.ranks} * lists.stride),
        ranks_(lists.ranks) {
    const replay_input input{.rows = lists,
                             .where = where,
                             .microbatches = sizes.microbatches,
                             .slices = sizes.slices,
                             .costs = table};
    turn_order order(turns_, lists.stride);
    live_ = replay(input, order).ok() && order.count == turns_.size();
    if (!live_) return;
    find_places(sizes);
  }
  constexpr ~half_merge() = default;  // nvcc needs it written

  //! Whether the lists come to an end.
  constexpr bool live() const { return live_; }
  //! Of the lists as they are.
  constexpr std::int64_t makespan() const { return makespan_; }

  //! Joins halves of the lists as they were given.
  //! @param out  where the lists go; none: only measures
  constexpr result run(const rules& by, job_sink* out) {
    result made;
    for (int rank = 0; rank < lists_.ranks; ++rank)
      ranks_[rank] = {.level = table_.base_of(rank), .limit = table_.limit_of(rank)};
    ++run_;
    const std::int64_t count = turns_.size();
    for (std::int64_t turn = 0; turn < count; ++turn) {
      const std::int32_t at = turns_[turn];
      const place_of& here = places_[at];
      const std::int32_t runs = here.run == run_ ? here.runs : at;
      if (runs < 0) continue;
      rank_state& rank = ranks_[here.rank];
      const job_cost* takes = here.cost;  // of those that change places it is the same
      bool joined = false;
      if (!here.second) {
        if (here.arrives > rank.clock) rank.clock = here.arrives;
        if (here.paired && places_[at + 1].arrives > rank.clock)
          rank.clock = places_[at + 1].arrives;
        if (rank.first < 0) rank.first = rank.clock;
        joined = here.splits && joins(at, by);
        if (joined) takes = whole_of(here), ++made.joined;
        rank.clock += joined ? takes->time : here.time;
      }
      if (rank.limit != unlimited && rank.level + need(*takes) > rank.limit) made.fits = false;
      rank.level += takes->change;
      if (here.to >= 0) places_[here.to].arrives = rank.clock + here.hop;
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
  //! In which order the jobs of all ranks can be looked at: a cause before what it leads to.
  struct turn_order : replay_observer {
    scratch<std::int32_t>& turns;
    int stride;
    std::int64_t count = 0;

    constexpr turn_order(scratch<std::int32_t>& turns_, int stride_)
        : turns(turns_), stride(stride_) {}
    constexpr void ran(int rank, int step, const job& work, std::int64_t, std::int64_t) {
      if (is_compute(work.kind)) turns[count++] = rank * stride + step;
    }
  };
  //! A step of a rank's list; places are numbered rank times stride, and the step.
  struct place_of {
    const job_cost* cost = nullptr;
    std::int64_t time = 0;     // of the job, or of the pair that it is in
    std::int64_t tail = 0;     // from the node's start to the end of the step, by what follows it
    std::int64_t hop = 0;      // that its output takes
    std::int64_t arrives = 0;  // what comes from another stage, while halves are joined
    std::int32_t to = -1;      // the place that its output is for
    std::int32_t half = -1;    // of a half the place of the other
    std::int32_t rank = 0;
    bool paired = false;  // with the next
    bool second = false;  // of a pair
    bool last = false;    // of its rank
    bool weight = false;  // the second half of a backward, by itself
    bool splits = false;  // an input half, by itself, with a job behind it and its other half
    // Where that run of all says otherwise:
    int run = 0;
    std::int32_t runs = 0;  // the place whose job runs here; -1: none
    std::int32_t own = 0;   // where the other half runs
  };
  struct rank_state {
    std::int64_t level = 0;  // of memory
    std::int64_t clock = 0;
    std::int64_t first = -1;  // start of its first job
    std::int64_t limit = 0;   // of memory
  };

  static constexpr std::int64_t need(const job_cost& takes) {
    return takes.peak > takes.change ? takes.peak : takes.change;
  }
  //! A table has the costs of a rank's chunk side by side.
  static constexpr const job_cost* whole_of(const place_of& input) {
    return input.cost +
           (static_cast<int>(job_kind::backward) - static_cast<int>(job_kind::backward_input));
  }

  //! From the last job to the first: what an output is for is known before it.
  constexpr void find_places(const shape& sizes) {
    const int stages = where_.stages();
    const std::int64_t from_stage = std::int64_t{sizes.microbatches} * sizes.slices;
    scratch<std::int32_t> forwards(from_stage * stages);  // places plus one: 0, there is none
    scratch<std::int32_t> backwards(from_stage * stages);
    for (std::int64_t turn = turns_.size() - 1; turn >= 0; --turn) {
      const std::int32_t at = turns_[turn];
      const job& work = lists_.items[at];
      place_of& here = places_[at];
      here.rank = at / lists_.stride;
      const int step = at - here.rank * lists_.stride;
      here.last = step + 1 == lists_.counts[here.rank];
      here.paired = work.paired && !here.last;
      here.second = step > 0 && lists_.items[at - 1].paired;
      here.cost = &table_.of(here.rank, where_.chunk_of(work.stage, work.microbatch), work);
      here.time = here.cost->time;
      const std::int64_t cell =
          work.stage * from_stage + std::int64_t{work.microbatch} * sizes.slices + work.slice;
      if (work.kind == job_kind::forward) {
        forwards[cell] = at + 1;
        if (work.stage + 1 < stages) here.to = forwards[cell + from_stage] - 1;
      } else if (work.kind != job_kind::recompute) {
        here.weight = work.kind == job_kind::backward_weight && !work.paired && !here.second;
        const std::int32_t other = backwards[cell] - 1;
        if (work.kind == job_kind::backward_input && other >= 0 && places_[other].weight) {
          here.half = other;
          places_[other].half = at;
          here.splits = !here.paired && !here.second && !here.last;
        }
        backwards[cell] = at + 1;
        if (work.stage > 0 && is_input_gradient(work.kind))
          here.to = backwards[cell - from_stage] - 1;
      }
      if (here.to >= 0 && places_[here.to].rank != here.rank) here.hop = table_.communication;
      if (!here.second) find_tail(here, at);
    }
  }
  constexpr void find_tail(place_of& here, std::int32_t at) {
    std::int64_t after = sent_tail(here);
    const place_of& end = here.paired ? places_[at + 1] : here;
    if (here.paired) {
      here.time = table_.pair_time(here.time, end.time);
      if (sent_tail(end) > after) after = sent_tail(end);
    }
    const std::int64_t next = end.last ? 0 : places_[here.paired ? at + 2 : at + 1].tail;
    here.tail = here.time + (next > after ? next : after);
    if (here.tail > makespan_) makespan_ = here.tail;
    if (here.paired) places_[at + 1].tail = here.tail;
  }
  //! From the end of a job to that of the step, by what its output is for.
  constexpr std::int64_t sent_tail(const place_of& from) const {
    return from.to < 0 ? 0 : places_[from.to].tail + from.hop;
  }

  //! What this run says of the place.
  constexpr place_of& told(std::int32_t at) {
    place_of& here = places_[at];
    if (here.run != run_) here.run = run_, here.runs = at, here.own = here.half;
    return here;
  }
  //! Whether the input half there is joined with its other half, which then runs no more.
  constexpr bool joins(std::int32_t at, const rules& by) {
    if (by.length == no_length) return false;
    if (!places_[at + 1].weight) return false;
    place_of& next = told(at + 1);
    const place_of& input = told(at);
    const bool other = input.own != at + 1;
    if (other) {
      const place_of& own = places_[input.own];
      if (!by.exchange || !(*next.cost == *own.cost) || places_[next.runs].half < 0) return false;
    }
    const rank_state& rank = ranks_[input.rank];
    if (by.keeps_limits && rank.limit != unlimited && !within_limit(rank, input, next)) return false;
    if (by.length != any_length && !pays(input, next, at, by.length)) return false;
    if (other) {
      told(input.own).runs = next.runs;
      told(places_[next.runs].half).own = input.own;
    }
    next.runs = -1;
    return true;
  }
  static constexpr bool within_limit(const rank_state& rank, const place_of& input,
                                     const place_of& weight) {
    const job_cost& both = *whole_of(input);
    return both.change <= input.cost->change + weight.cost->change &&
           rank.level + need(both) <= rank.limit;
  }
  constexpr bool pays(const place_of& input, const place_of& weight, std::int32_t at,
                      std::int64_t length) const {
    const rank_state& rank = ranks_[input.rank];
    const job_cost& both = *whole_of(input);
    const std::int64_t split = input.time + weight.time;
    if (both.time > split) return false;
    const std::int64_t next = weight.last ? 0 : places_[at + 2].tail;
    const std::int64_t sent = sent_tail(input);
    const std::int64_t joined = rank.clock + both.time + (next > sent ? next : sent);
    if (joined <= length) return true;
    const std::int64_t halves =
        rank.clock + (split + next > input.time + sent ? split + next : input.time + sent);
    return joined <= halves;
  }

  placement where_;
  job_table_view table_;
  job_rows lists_;
  scratch<std::int32_t> turns_;
  scratch<place_of> places_;
  scratch<rank_state> ranks_;
  std::int64_t makespan_ = 0;
  int run_ = 0;
  bool live_ = false;
};

}  // namespace stretto::schedule
