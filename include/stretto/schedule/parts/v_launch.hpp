#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_orders.hpp"
#include "stretto/schedule/parts/v_timeline.hpp"

namespace stretto::schedule {

//! Lays the forwards and backwards for the input of a V's building block once for each micro-batch,
//! which begins, a period or more after the one before, in the first slot where no two jobs meet
//! and no rank ever keeps more than it may. Backwards for the weights take the slots that are left,
//! the oldest first. So memory that is too little for a block with a bubble in no period is used
//! all the same: K micro-batches follow each other as closely as in V-Min, and the next K when the
//! last rank has room, about 2 p slots after them. When a pipeline may begin what comes next is
//! told by its table of reservations: Davidson 1971, "The Design and Control of Pipelined Function
//! Generators".
class v_launch {
 public:
  //! @param blocks  of each rank; of the backwards for the weights nothing is read
  constexpr v_launch(const shape& sizes, const v_block* blocks, v_orders& to)
      : p_(sizes.ranks),
        blocks_(blocks),
        to_(to),
        starts_(sizes.microbatches),
        lines_(p_),
        meet_(length() + 1) {
    for (int rank = 0; rank < p_; ++rank)
      for (int later = v_up; later < v_weight_upper; ++later)
        for (int stream = v_down; stream < later; ++stream) {
          const int apart = blocks[rank].at[later] - blocks[rank].at[stream];
          meet_[apart < 0 ? -apart : apart] = true;
        }
    fits_ = to.most() >= 2 && !meet_[0];
    std::int32_t slot = 0;
    while (fits_ && begun_ < sizes.microbatches) {
      while (!begin(slot)) ++slot;
      slot += v_period;
      for (int rank = 0; rank < p_; ++rank)
        run(lines_[rank], rank, slot + blocks[rank].at[v_down], true);
    }
    for (int rank = 0; fits_ && rank < p_; ++rank) {
      rank_line& line = lines_[rank];
      run(line, rank, slot + blocks[rank].at[v_up], true);
      line.pending = 0;
      run(line, rank, slot + length(), true);
    }
  }
  constexpr ~v_launch() = default;  // nvcc needs it written

  //! Whether the block has no two jobs in one slot, and memory is enough for a micro-batch.
  constexpr bool fits() const { return fits_; }

 private:
  //! How far a rank's slots are settled.
  struct rank_line {
    std::int32_t slot = 0;
    std::int32_t kept = 0;
    std::int32_t pending = 0;                // backwards for the weights
    std::int32_t done[v_weight_upper] = {};  // of each stream
  };

  //! Slots from a micro-batch's first job to its last but those for the weights.
  constexpr int length() const { return blocks_[0].at[v_back_up] + 1; }

  //! Begins the next micro-batch there.
  //! @return false when it cannot
  constexpr bool begin(std::int32_t slot) {
    for (int before = begun_ - 1; before >= 0 && slot - starts_[before] < length(); --before)
      if (meet_[slot - starts_[before]]) return false;
    starts_[begun_++] = slot;
    for (int rank = p_ - 1; rank >= 0; --rank) {
      rank_line line = lines_[rank];
      if (run(line, rank, slot + blocks_[rank].at[v_up] + 1, false)) continue;
      --begun_;
      return false;
    }
    return true;
  }

  //! Settles the rank's slots before that one.
  //! @return false when it would keep too much
  constexpr bool run(rank_line& line, int rank, std::int32_t until, bool write) {
    for (;;) {
      int next = v_weight_upper;
      std::int32_t slot = until;
      for (int stream = 0; stream < v_weight_upper; ++stream) {
        if (line.done[stream] == begun_) continue;
        const std::int32_t at = starts_[line.done[stream]] + blocks_[rank].at[stream];
        if (at >= slot) continue;
        slot = at;
        next = stream;
      }
      for (; line.slot < slot && line.pending > 0; --line.pending, --line.kept)
        place(line, rank, v_weight_upper, write);
      if (next == v_weight_upper) break;
      line.slot = slot;
      place(line, rank, next, write);
      ++line.done[next];
      if (next >= v_back_down)
        ++line.pending;
      else if (++line.kept > to_.most())
        return false;
    }
    if (line.slot < until) line.slot = until;
    return true;
  }
  constexpr void place(rank_line& line, int rank, int stream, bool write) {
    if (write) to_.order(rank)[to_.count(rank)++] = {8 * line.slot + stream};
    ++line.slot;
  }

  int p_;
  const v_block* blocks_;
  v_orders& to_;
  scratch<std::int32_t> starts_;  // of micro-batches
  scratch<rank_line> lines_;
  scratch<bool> meet_;  // two jobs of micro-batches that begin so many slots apart
  int begun_ = 0;
  bool fits_ = false;
};

}  // namespace stretto::schedule
