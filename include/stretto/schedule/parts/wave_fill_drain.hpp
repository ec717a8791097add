#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/link_clocks.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/parts/kept_room.hpp"
#include "stretto/schedule/parts/whole_backwards.hpp"
#include "stretto/schedule/variants.hpp"

namespace stretto::schedule {

//! Fill-drain on a wave: all forwards, then all backwards, chunk after chunk (GPipe, Huang et al.
//! 2019), with backwards for the weights wherever a rank would be idle, or short of memory, and at
//! the end. GPipe is no shorter: before a job it has run all that this has, and no faster.
class wave_fill_drain {
 public:
  //! @param whole  backwards are whole where that takes less than their halves
  //! @param out    where the lists go; none: only measures
  constexpr wave_fill_drain(const shape& sizes, const job_table_view& table, bool whole,
                            job_sink* out = nullptr)
      : where_(place(placement_kind::wave, sizes)),
        count_(sizes.microbatches),
        table_(table),
        whole_(whole),
        out_(out),
        links_(table, sizes.ranks, sizes.chunks),
        ranks_(sizes.ranks),
        there_(count_),
        pending_(std::int64_t{sizes.ranks} * sizes.chunks * count_) {
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      rank_state& at = ranks_[rank];
      at.level = table.base_of(rank);
      at.head = at.tail = std::int64_t{rank} * sizes.chunks * count_;
      if (table.limit_of(rank) != unlimited) at.weight_need = most_weight_need(rank);
    }
  }
  constexpr ~wave_fill_drain() = default;  // nvcc needs it written

  //! Stage by stage: what a rank does before, it has done by then.
  //! @return false when a job does not fit
  constexpr bool run() {
    const int last = where_.stages() - 1;
    for (int stage = 0; stage <= last; ++stage)
      for (int k = 0; k < count_; ++k) put({stage, k, 0, job_kind::forward}, stage + 1);
    if (!fits_) return false;
    for (int stage = last; stage >= 0; --stage) {
      const int rank = where_.rank_of(stage, 0);
      rank_state& at = ranks_[rank];
      for (int k = 0; k < count_; ++k) {
        job work{stage, k, 0, job_kind::backward_input};
        const bool split = !whole_ || !whole_takes_less(table_, rank, where_.chunk_of(work), work);
        if (!split) work.kind = job_kind::backward;
        while (at.head < at.tail && (at.clock < there_[k] || !leaves_room(rank, work)))
          put_weight(rank);
        put(work, stage - 1);
        if (split) pending_[at.tail++] = {stage, k, 0, job_kind::backward_weight};
      }
    }
    for (int rank = 0; rank < where_.ranks; ++rank)
      while (ranks_[rank].head < ranks_[rank].tail) put_weight(rank);
    return fits_;
  }

  //! To the end of the last job.
  constexpr std::int64_t makespan() const {
    std::int64_t most = 0;
    for (int rank = 0; rank < where_.ranks; ++rank)
      if (ranks_[rank].clock > most) most = ranks_[rank].clock;
    return most;
  }
  //! From a rank's first job to its last, the longest.
  constexpr std::int64_t span() const {
    std::int64_t most = 0;
    for (int rank = 0; rank < where_.ranks; ++rank)
      if (const std::int64_t span = ranks_[rank].clock - ranks_[rank].start; span > most)
        most = span;
    return most;
  }

 private:
  struct rank_state {
    std::int64_t clock = 0;
    std::int64_t start = -1;       // of its first job
    std::int64_t level = 0;        // of memory
    std::int64_t weight_need = 0;  // the most that a backward for the weights needs above it
    std::int64_t head = 0;         // of those that are pending, the oldest
    std::int64_t tail = 0;
  };

  static constexpr std::int64_t need(const job_cost& cost) {
    return cost.peak > cost.change ? cost.peak : cost.change;
  }
  constexpr const job_cost& cost_of(int rank, const job& work) const {
    return table_.of(rank, where_.chunk_of(work), work);
  }
  constexpr std::int64_t most_weight_need(int rank) const {
    std::int64_t most = 0;
    for (int chunk = 0; chunk < where_.chunks; ++chunk)
      for (int k = 0; k < count_; ++k) {
        const job work{where_.stage_of(rank, chunk), k, 0, job_kind::backward_weight};
        if (const std::int64_t one = need(cost_of(rank, work)); one > most) most = one;
      }
    return most;
  }
  //! Whether the job fits, and behind it any backward for the weights.
  constexpr bool leaves_room(int rank, const job& work) const {
    const rank_state& at = ranks_[rank];
    const job_cost& cost = cost_of(rank, work);
    const std::int64_t after = cost.change + at.weight_need;
    const std::int64_t most = need(cost) > after ? need(cost) : after;
    return table_.limit_of(rank) == unlimited || at.level + most <= table_.limit_of(rank);
  }

  constexpr void put_weight(int rank) { run_on(rank, pending_[ranks_[rank].head++]); }
  //! Runs a job once what it needs is there, and sends what it makes to the stage `next`.
  constexpr void put(const job& work, int next) {
    const int rank = where_.rank_of(work);
    rank_state& at = ranks_[rank];
    std::int64_t& there = there_[work.microbatch];
    if (there > at.clock) at.clock = there;
    if (at.start < 0) at.start = at.clock;
    run_on(rank, work);
    const bool sent = next >= 0 && next < where_.stages() && where_.rank_of(next, 0) != rank;
    there = sent ? links_.there(rank, where_.rank_of(next, 0), at.clock) : at.clock;
  }
  constexpr void run_on(int rank, const job& work) {
    rank_state& at = ranks_[rank];
    const job_cost& cost = cost_of(rank, work);
    if (at.level + need(cost) > table_.limit_of(rank)) fits_ = false;
    at.level += cost.change;
    at.clock += cost.time;
    if (out_ != nullptr) out_->push(rank, work);
  }

  placement where_;
  int count_;
  const job_table_view& table_;
  bool whole_;
  job_sink* out_;
  detail::link_clocks links_;
  scratch<rank_state> ranks_;
  scratch<std::int64_t> there_;  // when the input of each micro-batch's next job is
  scratch<job> pending_;         // backwards for the weights, of each rank the oldest first
  bool fits_ = true;
};

//! The variants of a search that are fill-drain: first with backwards whole where that takes less,
//! than which GPipe is no shorter; then with none.
struct fill_drain_search {
  objective_kind objective;

  static constexpr int variants = 2;

  //! @param out  where the lists go; they mean nothing unless they fit. None: only measures
  constexpr variant_score run(const shape& sizes, const job_table_view& table, int tried,
                              job_sink* out) const {
    wave_fill_drain made(sizes, table, tried == 0, out);
    if (!made.run()) return {};
    return score_of(objective, made.makespan(), made.span(), kept_room::widest(sizes, table));
  }
};

}  // namespace stretto::schedule
