#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/shape.hpp"

namespace stretto::schedule {

//! The memory of every rank during a greedy pass, and which jobs are safe. A forward is safe when
//! after it, with every pending backward for the weights run, the micro-batches on the rank can
//! still be finished one after the other, the oldest first, within the limit. As jobs of one kind
//! and chunk run in order, the oldest micro-batch of all then never waits for memory: a pass that
//! starts only safe jobs cannot get stuck. It needs what micro-batches one by one do whose
//! backwards for the weights run at once; wave_walk may get by with less. For limited ranks alone.
class wave_memory {
 public:
  constexpr wave_memory(const shape& sizes, const job_table_view& table)
      : steps_(2 * sizes.chunks),
        table_(table),
        levels_(sizes.ranks),
        rows_(std::int64_t{sizes.ranks} * 2 * sizes.chunks) {
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      level& at = levels_[rank];
      at.now = at.drained = table.base_of(rank);
      at.limit = table.limit_of(rank);
      if (at.limit != unlimited) lay(rank);
    }
  }
  constexpr ~wave_memory() = default;  // nvcc needs it written

  //! Whether a backward for the input fits once all pending weights have run.
  constexpr bool has_room(int rank, int chunk) const {
    const level& at = levels_.data()[rank];
    return at.drained + row_of(rank)[steps_ - 1 - chunk].peak <= at.limit;
  }

  //! Whether the chunk's next forward is safe.
  //! @param done jobs done of the rank's chunks, three counts each: F, I, W
  constexpr bool is_safe(int rank, int chunk, const std::int32_t* done) const {
    const level& at = levels_.data()[rank];
    const step* const row = row_of(rank);
    if (at.drained + row[chunk].peak > at.limit) return false;
    std::int64_t used = at.drained + row[chunk].change;
    // From the micro-batches that have come the furthest to those that have only begun.
    int further = done[1];
    for (int k = steps_ - 1; k > 0; --k) {
      // How many have done k steps, with this forward.
      const int reached = 2 * k > steps_ ? done[3 * (steps_ - k) + 1]
                                         : done[3 * (k - 1)] + (k == chunk + 1 ? 1 : 0);
      if (reached == further) continue;
      if (used + row[k].need > at.limit) return false;
      used -= (reached - further) * row[k].left;
      further = reached;
    }
    return true;
  }

  //! Whether the job fits now, with what is pending left room to run after it.
  constexpr bool fits(int rank, int chunk, bool forward, bool pending) const {
    if (!forward && !pending) return true;  // has_room has seen to it
    const level& at = levels_[rank];
    const job_cost& spent =
        table_.at(rank, chunk, forward ? job_kind::forward : job_kind::backward_input);
    const std::int64_t highest = forward && spent.change > spent.peak ? spent.change : spent.peak;
    const std::int64_t after = pending ? spent.change + at.weight_peak : highest;
    return at.now + (after > highest ? after : highest) <= at.limit;
  }

  //! Runs a job (0 F, 1 I, 2 W); false when it does not fit.
  constexpr bool take(int rank, int chunk, int kind) {
    level& at = levels_[rank];
    const job_cost& spent = table_.at(rank, chunk,
                                      kind == 0   ? job_kind::forward
                                      : kind == 1 ? job_kind::backward_input
                                                  : job_kind::backward_weight);
    if (at.now + (spent.change > spent.peak ? spent.change : spent.peak) > at.limit) return false;
    at.now += spent.change;
    if (kind < 2) at.drained += row_of(rank)[kind == 0 ? chunk : steps_ - 1 - chunk].change;
    return true;
  }

 private:
  struct level {
    std::int64_t now = 0;
    std::int64_t drained = 0;  // once all pending backwards for the weights have run
    std::int64_t limit = 0;
    std::int64_t weight_peak = 0;
  };
  //! A micro-batch's way over a rank: forwards of chunks 0, 1 ..., then backwards of the chunks
  //! from the last to the first, each with its weights.
  struct step {
    std::int64_t change = 0;
    std::int64_t peak = 0;  // most in use above the level at its start
    std::int64_t left = 0;  // what a micro-batch gives back from this step to its end
    std::int64_t need = 0;  // and the most it takes above its present level until then
  };

  constexpr const step* row_of(int rank) const {
    return rows_.data() + std::int64_t{rank} * steps_;
  }

  constexpr void lay(int rank) {
    step next{};
    for (int k = steps_ - 1; k >= 0; --k) {
      const int chunk = 2 * k < steps_ ? k : steps_ - 1 - k;
      const bool forward = 2 * k < steps_;
      const job_cost& first =
          table_.at(rank, chunk, forward ? job_kind::forward : job_kind::backward_input);
      step made{.change = first.change,
                .peak = first.change > first.peak ? first.change : first.peak};
      if (made.peak < 0) made.peak = 0;
      if (!forward) {
        const job_cost& second = table_.at(rank, chunk, job_kind::backward_weight);
        const std::int64_t more = second.change > second.peak ? second.change : second.peak;
        if (made.change + more > made.peak) made.peak = made.change + more;
        made.change += second.change;
        if (second.peak > levels_[rank].weight_peak) levels_[rank].weight_peak = second.peak;
      }
      made.left = next.left - made.change;
      made.need = made.change + next.need > made.peak ? made.change + next.need : made.peak;
      rows_[std::int64_t{rank} * steps_ + k] = next = made;
    }
  }

  int steps_;
  const job_table_view& table_;
  scratch<level> levels_;
  scratch<step> rows_;
};

}  // namespace stretto::schedule
