#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/replay.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"

namespace stretto::schedule {

//! A step of a rank's list; places are numbered rank times stride, and the step.
struct half_place {
  const job_cost* cost = nullptr;
  std::int64_t time = 0;     //!< of the job, or of the pair that it is in
  std::int64_t tail = 0;     //!< from the node's start to the end of the step, by what follows it
  std::int64_t hop = 0;      //!< that its output takes
  std::int64_t arrives = 0;  //!< what comes from another stage, while halves are joined
  std::int32_t to = -1;      //!< the place that its output is for
  std::int32_t half = -1;    //!< of a half the place of the other
  std::int32_t rank = 0;
  bool paired = false;  //!< with the next
  bool second = false;  //!< of a pair
  bool last = false;    //!< of its rank
  bool weight = false;  //!< the second half of a backward, by itself
  bool splits = false;  //!< an input half, by itself, with a job behind it and its other half
  // Where that run of all says otherwise:
  int run = 0;
  std::int32_t runs = 0;  //!< the place whose job runs here; -1: none
  std::int32_t own = 0;   //!< where the other half runs

  //! Of an input half what the whole backward takes: a table has the costs of a rank's chunk side
  //! by side.
  constexpr const job_cost* whole() const {
    return cost +
           (static_cast<int>(job_kind::backward) - static_cast<int>(job_kind::backward_input));
  }
};

//! What is known of lists before halves in them are joined: which belong together, what waits for
//! each, and how far it is from there to the end of the step. Found once, from the last job to the
//! first.
class half_places {
 public:
  constexpr half_places(const shape& sizes, const placement& where, const job_table_view& table,
                        const job_rows& lists)
      : turns(lists.total()),
        places(std::int64_t{lists.ranks} * lists.stride),
        where_(where),
        table_(table),
        lists_(lists) {
    const replay_input input{.rows = lists,
                             .where = where,
                             .microbatches = sizes.microbatches,
                             .slices = sizes.slices,
                             .costs = table};
    turn_order order(turns, lists.stride);
    live = replay(input, order).ok() && order.count == turns.size();
    if (!live) return;
    find_places(sizes);
  }
  constexpr ~half_places() = default;  // nvcc needs it written

  //! From the end of a job to that of the step, by what its output is for.
  constexpr std::int64_t sent_tail(const half_place& from) const {
    return from.to < 0 ? 0 : places[from.to].tail + from.hop;
  }

  //! Places in an order in which jobs of all ranks can be looked at: a cause before what it leads
  //! to.
  scratch<std::int32_t> turns;
  scratch<half_place> places;
  std::int64_t makespan = 0;  //!< of the lists as they are
  bool live = false;          //!< they come to an end

 private:
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

  //! From the last job to the first: what an output is for is known before it.
  constexpr void find_places(const shape& sizes) {
    const int stages = where_.stages();
    bool alike = table_.classes.empty();
    const std::int64_t from_stage = std::int64_t{sizes.microbatches} * sizes.slices;
    scratch<std::int32_t> forwards(from_stage * stages);  // places plus one: 0, there is none
    scratch<std::int32_t> backwards(from_stage * stages);
    for (std::int64_t turn = turns.size() - 1; turn >= 0; --turn) {
      const std::int32_t at = turns[turn];
      const job& work = lists_.items[at];
      half_place& here = places[at];
      here.rank = at / lists_.stride;
      const int step = at - here.rank * lists_.stride;
      here.last = step + 1 == lists_.counts[here.rank];
      here.paired = work.paired && !here.last;
      here.second = step > 0 && lists_.items[at - 1].paired;
      here.cost =
          alike ? &table_.at(here.rank, where_.chunk_of(work.stage, work.microbatch), work.kind)
                : &table_.of(here.rank, where_.chunk_of(work.stage, work.microbatch), work);
      here.time = here.cost->time;
      const std::int64_t cell =
          work.stage * from_stage + std::int64_t{work.microbatch} * sizes.slices + work.slice;
      if (work.kind == job_kind::forward) {
        forwards[cell] = at + 1;
        if (work.stage + 1 < stages) here.to = forwards[cell + from_stage] - 1;
      } else if (work.kind != job_kind::recompute) {
        here.weight = work.kind == job_kind::backward_weight && !work.paired && !here.second;
        const std::int32_t other = backwards[cell] - 1;
        if (work.kind == job_kind::backward_input && other >= 0 && places[other].weight) {
          here.half = other;
          places[other].half = at;
          here.splits = !here.paired && !here.second && !here.last;
        }
        backwards[cell] = at + 1;
        if (work.stage > 0 && is_input_gradient(work.kind))
          here.to = backwards[cell - from_stage] - 1;
      }
      if (const int to = here.to < 0 ? here.rank : places[here.to].rank; to != here.rank)
        here.hop = table_.hops()(here.rank, to);
      if (!here.second) find_tail(here, at);
    }
  }
  constexpr void find_tail(half_place& here, std::int32_t at) {
    std::int64_t after = sent_tail(here);
    const half_place& end = here.paired ? places[at + 1] : here;
    if (here.paired) {
      here.time = table_.pair_time(here.time, end.time);
      if (sent_tail(end) > after) after = sent_tail(end);
    }
    const std::int64_t next = end.last ? 0 : places[here.paired ? at + 2 : at + 1].tail;
    here.tail = here.time + (next > after ? next : after);
    if (here.tail > makespan) makespan = here.tail;
    if (here.paired) places[at + 1].tail = here.tail;
  }

  placement where_;
  job_table_view table_;
  job_rows lists_;
};

}  // namespace stretto::schedule
