#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_orders.hpp"

namespace stretto::schedule {

//! Closes a block's slots up as the authors of V-Min and V-Half do (Qi et al. 2024): backwards for
//! the weights take the free slots behind their other halves, the oldest first. What comes before
//! the first backward of rank 0's first stage, and what comes after its last forward where that is
//! the later one, is pulled ahead, job by job, into the first free slot behind its input in which
//! no rank comes to keep more than the block does. All then run as soon as they can; and the end is
//! pulled ahead once more, while the backwards for the weights are left out and filled in anew.
class v_pulled {
 public:
  //! So many jobs at most: effort and memory follow the slots of all ranks.
  static constexpr std::int64_t most_jobs = 1 << 19;
  static constexpr bool serves(const shape& sizes) {
    return std::int64_t{v_streams} * sizes.ranks * sizes.microbatches <= most_jobs;
  }

  constexpr v_pulled(const shape& sizes, const v_block* blocks, v_orders& to)
      : p_(sizes.ranks),
        m_(sizes.microbatches),
        width_(slots_of(blocks)),
        rows_(std::int64_t{width_} * p_),
        levels_(std::int64_t{width_} * p_),
        pending_(std::int64_t{width_} * p_),
        ends_(std::int64_t{v_streams} * p_ * m_) {
    for (int rank = 0; rank < p_; ++rank)
      for (int stream = 0; stream < v_weight_upper; ++stream)
        for (int microbatch = 0; microbatch < m_; ++microbatch)
          at(rank, blocks[rank].at[stream] + v_period * microbatch) = code(stream, microbatch);
    for (int rank = 0; rank < p_; ++rank) {
      fill_weights(rank, false);
      if (const int kept = simulate(rank, 0); kept > most_) most_ = kept;
    }
    pull(true);
    run_at_once();
    left_out_ = true;
    for (int rank = 0; rank < p_; ++rank) {
      drop_weights(rank);
      simulate(rank, 0);
    }
    pull(false);
    for (int rank = 0; rank < p_; ++rank) {
      fill_weights(rank, true);
      write(rank, to);
    }
  }
  constexpr ~v_pulled() = default;  // nvcc needs it written

 private:
  // A slot's job, from 1 on; 0: it is free.
  static constexpr std::int32_t code(int stream, int microbatch) {
    return 8 * microbatch + stream + 1;
  }
  static constexpr int stream_of(std::int32_t job) { return (job - 1) % 8; }
  static constexpr int microbatch_of(std::int32_t job) { return (job - 1) / 8; }

  //! Of a rank, with room for all backwards for the weights behind the last job.
  constexpr int slots_of(const v_block* blocks) const {
    int last = 0;
    for (int rank = 0; rank < p_; ++rank)
      if (blocks[rank].at[v_back_up] > last) last = blocks[rank].at[v_back_up];
    return last + v_period * (m_ - 1) + 2 * m_ + 2;
  }
  constexpr std::int32_t& at(int rank, int slot) {
    return rows_[std::int64_t{rank} * width_ + slot];
  }
  constexpr std::int32_t& level(int rank, int slot) {
    return levels_[std::int64_t{rank} * width_ + slot];
  }
  //! The slot behind a job's own.
  constexpr std::int32_t& end(int rank, int stream, int microbatch) {
    return ends_[(std::int64_t{stream} * p_ + rank) * m_ + microbatch];
  }
  //! The end of what a job reads; null: it reads nothing.
  constexpr const std::int32_t* input_of(int rank, std::int32_t job) {
    const int stream = stream_of(job), microbatch = microbatch_of(job);
    const bool down = stream == v_down || stream == v_back_down;
    const int there = down ? rank - 1 : rank + 1;
    if (stream >= v_weight_upper) return &end(rank, stream - 2, microbatch);
    if (there >= 0 && there < p_) return &end(there, stream, microbatch);
    return stream == v_down ? nullptr : &end(rank, stream - 1, microbatch);
  }
  //! The first slot in which a job has its input and the one before it of its stream behind it.
  constexpr int earliest(int rank, std::int32_t job) {
    const std::int32_t* const input = input_of(rank, job);
    const int stream = stream_of(job), microbatch = microbatch_of(job);
    const int from = input == nullptr ? 0 : *input;
    const int before = microbatch == 0 ? 0 : end(rank, stream, microbatch - 1);
    return before > from ? before : from;
  }

  //! The oldest first, or those of the second chunk.
  constexpr void fill_weights(int rank, bool upper_first) {
    int done[2]{}, waiting[2]{};  // by chunk, the second first
    int oldest = 0;               // slot of the oldest's other half
    for (int slot = 0; slot < width_; ++slot) {
      const std::int32_t job = at(rank, slot);
      if (job != 0) {
        if (stream_of(job) >= v_back_down) ++waiting[stream_of(job) - v_back_down];
        continue;
      }
      if (waiting[0] + waiting[1] == 0) continue;
      int of = waiting[0] > 0 ? 0 : 1;
      if (!upper_first) {
        while (at(rank, oldest) == 0 || stream_of(at(rank, oldest)) < v_back_down ||
               stream_of(at(rank, oldest)) >= v_weight_upper)
          ++oldest;
        of = stream_of(at(rank, oldest++)) - v_back_down;
      }
      --waiting[of];
      at(rank, slot) = code(v_weight_upper + of, done[of]++);
    }
  }
  constexpr void drop_weights(int rank) {
    for (int slot = 0; slot < width_; ++slot)
      if (at(rank, slot) != 0 && stream_of(at(rank, slot)) >= v_weight_upper) at(rank, slot) = 0;
  }

  //! What the rank keeps behind each slot from there on, and how many backwards for the weights
  //! wait; where these have no slots, each takes the first that is free. @return the most it keeps
  constexpr int simulate(int rank, int from) {
    int kept = from == 0 ? 0 : level(rank, from - 1);
    int waiting = from == 0 ? 0 : pending_[std::int64_t{rank} * width_ + from - 1];
    int most = kept;
    for (int slot = from; slot < width_; ++slot) {
      const std::int32_t job = at(rank, slot);
      if (job == 0) {
        if (waiting > 0 && left_out_) --waiting, --kept;
      } else if (stream_of(job) < v_back_down) {
        if (++kept > most) most = kept;
      } else if (stream_of(job) >= v_weight_upper) {
        --kept;
      } else {
        ++waiting;
      }
      level(rank, slot) = kept;
      pending_[std::int64_t{rank} * width_ + slot] = waiting;
    }
    return most;
  }

  //! @param begins  also what comes before the first backward
  constexpr void pull(bool begins) {
    bool first_back = false, last_forward = false;
    for (int slot = 0; slot < width_; ++slot)
      for (int rank = 0; rank < p_; ++rank) {
        const std::int32_t job = at(rank, slot);
        if (job == 0) continue;
        if (rank == 0 && stream_of(job) == v_back_up) first_back = true;
        const bool moves = first_back ? last_forward : begins;
        last_forward = last_forward || (first_back && job == code(v_down, m_ - 1));
        const int to = moves ? place(rank, slot, earliest(rank, job)) : slot;
        end(rank, stream_of(job), microbatch_of(job)) = to + 1;
      }
  }
  //! Moves a job to the first slot from there on that will do.
  constexpr int place(int rank, int slot, int from) {
    const std::int32_t job = at(rank, slot);
    if (left_out_) {
      at(rank, slot) = 0;
      simulate(rank, slot);
      for (int tried = from; tried < slot; ++tried) {
        if (at(rank, tried) != 0) continue;
        at(rank, tried) = job;
        if (simulate(rank, tried) <= most_) return tried;
        at(rank, tried) = 0;
        simulate(rank, tried);
      }
      at(rank, slot) = job;
      simulate(rank, slot);
      return slot;
    }
    const int change = stream_of(job) < v_back_down ? 1 : stream_of(job) >= v_weight_upper ? -1 : 0;
    int to = slot;
    if (change > 0) {
      for (int tried = slot - 1; tried >= from && level(rank, tried) < most_; --tried)
        if (at(rank, tried) == 0) to = tried;
    } else {
      for (to = from; to < slot && at(rank, to) != 0;) ++to;
    }
    for (int passed = to; passed < slot; ++passed) level(rank, passed) += change;
    at(rank, slot) = 0;
    at(rank, to) = job;
    return to;
  }

  //! Each job in the slot behind its input and the one before it on its rank.
  constexpr void run_at_once() {
    scratch<std::int32_t> cursors(p_);  // of each rank, in what it had
    scratch<std::int32_t> clocks(p_);
    scratch<std::int32_t> before(std::int64_t{width_} * p_);
    for (std::int64_t each = 0; each < before.size(); ++each) {
      before[each] = rows_[each];
      rows_[each] = 0;
    }
    for (std::int64_t each = 0; each < ends_.size(); ++each) ends_[each] = 0;
    for (bool any = true; any;) {
      any = false;
      for (int rank = 0; rank < p_; ++rank)
        for (; cursors[rank] < width_; ++cursors[rank]) {
          const std::int32_t job = before[std::int64_t{rank} * width_ + cursors[rank]];
          if (job == 0) continue;
          const std::int32_t* const input = input_of(rank, job);
          if (input != nullptr && *input == 0) break;
          const int ready = earliest(rank, job);
          const int slot = ready > clocks[rank] ? ready : clocks[rank];
          at(rank, slot) = job;
          clocks[rank] = end(rank, stream_of(job), microbatch_of(job)) = slot + 1;
          any = true;
        }
    }
  }

  constexpr void write(int rank, v_orders& to) {
    int count = 0;
    for (int slot = 0; slot < width_; ++slot)
      if (at(rank, slot) != 0) to.order(rank)[count++] = {8 * slot + stream_of(at(rank, slot))};
    to.count(rank) = count;
  }

  int p_, m_, width_;
  int most_ = 0;
  bool left_out_ = false;          // backwards for the weights have no slots
  scratch<std::int32_t> rows_;     // jobs by rank and slot
  scratch<std::int32_t> levels_;   // what is kept behind each slot,
  scratch<std::int32_t> pending_;  // and how many backwards for the weights wait
  scratch<std::int32_t> ends_;     // by stream, rank and micro-batch
};

}  // namespace stretto::schedule
