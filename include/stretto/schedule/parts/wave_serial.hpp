#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"

namespace stretto::schedule {

//! One micro-batch on one rank of a wave with nothing beside it: forwards of the chunks from the
//! first to the last, backwards for the input the other way, and those for the weights where the
//! peak of memory is lowest. That is found, not tried:
//!
//! Under a given limit a backward for the weights that fits and takes no memory had better run at
//! once, because that only makes room; and if none fits, the next job must. An order that gets
//! further than this would begin by a job that does not fit here, after as many backwards for the
//! input and no more of those for the weights, hence at a level no lower. So the walk ends wherever
//! any order does; and the next limit that makes a difference is the least at which a job would
//! have fit that did not.
class wave_walk {
 public:
  constexpr wave_walk(const shape& sizes, const job_table_view& table, int rank);
  constexpr ~wave_walk() = default;  // nvcc needs it written

  //! The most memory that it takes above the level at its start, the least of all its orders where
  //! backwards for the weights give memory back; and what it leaves behind.
  constexpr std::int64_t need() const { return limit_; }
  constexpr std::int64_t left() const { return level_; }

  //! Calls `visit(chunk, kind)` job by job, in that order.
  //! @return false when the limit is too low
  template <class Visitor>
  constexpr bool walk(Visitor&& visit) {
    level_ = 0;
    next_ = unlimited;
    for (int chunk = 0; chunk < chunks_; ++chunk) {
      pending_[chunk] = false;
      if (!run(chunk, job_kind::forward, visit)) return false;
    }
    for (int chunk = chunks_ - 1; chunk >= 0; --chunk) {
      if (!run(chunk, job_kind::backward_input, visit)) return false;
      pending_[chunk] = true;
      make_room(visit);
    }
    for (int chunk = chunks_ - 1; chunk >= 0; --chunk)
      if (pending_[chunk] && !run(chunk, job_kind::backward_weight, visit)) return false;
    return true;
  }

 private:
  template <class Visitor>
  constexpr bool run(int chunk, job_kind kind, Visitor&& visit) {
    const job_cost& cost = table_.at(rank_, chunk, kind);
    const std::int64_t high = level_ + (cost.change > cost.peak ? cost.change : cost.peak);
    if (high > limit_) {
      if (high < next_) next_ = high;
      return false;
    }
    level_ += cost.change;
    visit(chunk, kind);
    return true;
  }
  //! Each that runs may let others fit.
  template <class Visitor>
  constexpr void make_room(Visitor&& visit) {
    for (int chunk = chunks_ - 1; chunk >= 0; --chunk)
      if (pending_[chunk] && table_.at(rank_, chunk, job_kind::backward_weight).change <= 0 &&
          run(chunk, job_kind::backward_weight, visit)) {
        pending_[chunk] = false;
        chunk = chunks_;
      }
  }

  int chunks_;
  const job_table_view& table_;
  int rank_;
  scratch<bool> pending_;  // backwards for the weights
  std::int64_t limit_ = 0;
  std::int64_t next_ = 0;  // the least above it under which more would have fit
  std::int64_t level_ = 0;
};

// Behind the class, or clang would not have the body of what it calls when a constant asks for it.
constexpr wave_walk::wave_walk(const shape& sizes, const job_table_view& table, int rank)
    : chunks_(sizes.chunks), table_(table), rank_(rank), pending_(chunks_) {
  while (!walk([](int, job_kind) {})) limit_ = next_;
}

//! The order that needs the least memory: micro-batches one by one.
constexpr void wave_one_by_one(const shape& sizes, const job_table_view& table, job_sink& out) {
  const placement where = place(placement_kind::wave, sizes);
  for (int rank = 0; rank < sizes.ranks; ++rank) {
    wave_walk one(sizes, table, rank);
    for (int microbatch = 0; microbatch < sizes.microbatches; ++microbatch)
      one.walk([&](int chunk, job_kind kind) {
        out.push(rank, {where.stage_of(rank, chunk), microbatch, 0, kind});
      });
  }
}

}  // namespace stretto::schedule
