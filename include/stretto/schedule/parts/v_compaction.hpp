#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_orders.hpp"
#include "stretto/schedule/parts/v_timeline.hpp"

namespace stretto::schedule {

//! Lays the building block of a V schedule once for each micro-batch, then moves every job, from
//! left to right, into the first free slots after its inputs and the job of its stream before it: a
//! forward only as far as no more activations are kept than a rank may. A rank's jobs are kept as a
//! list in order of time, so that the effort follows the jobs, not the slots.
class v_compaction {
 public:
  //! @param keep  the jobs stay where they are from the first backward of rank 0's first stage to
  //!              its last forward
  //! @param all   also backwards for the weights after the rank's last forward, which may run
  //!              anywhere there
  constexpr v_compaction(const shape& sizes, const v_block* blocks, bool keep, v_orders& to,
                         bool all = false)
      : p_(sizes.ranks),
        m_(sizes.microbatches),
        streams_(blocks[0].whole ? v_weight_upper : v_streams),
        use_{.width = blocks[0].whole ? 2 : 1,
             .releases = blocks[0].whole ? v_back_down : v_weight_upper,
             .most = to.most()},
        to_(to),
        ends_(std::int64_t{recent} * v_streams * p_),
        lines_(p_) {
    const std::int64_t lists = std::int64_t{streams_} * p_;
    std::int32_t slots = 0;
    for (int rank = 0; rank < p_; ++rank)
      for (int stream = 0; stream < streams_; ++stream)
        if (blocks[rank].at[stream] > slots) slots = blocks[rank].at[stream];
    // Which streams have their next job in a slot: lists, by their first plus one.
    scratch<std::int32_t> first(slots + std::int64_t{v_period} * m_ + 1);
    scratch<std::int32_t> next(lists);
    scratch<std::int32_t> done(lists);
    for (int rank = 0; rank < p_; ++rank)
      for (int stream = 0; stream < streams_; ++stream) {
        const std::int32_t slot = blocks[rank].at[stream];
        next[rank * streams_ + stream] = first[slot];
        first[slot] = rank * streams_ + stream + 1;
      }
    const int keep_from = keep ? blocks[0].at[v_back_up] : 0;
    const int keep_to = keep ? blocks[0].at[v_down] + v_period * (m_ - 1) : -1;
    slots += v_period * (m_ - 1);
    for (std::int32_t slot = 0; slot <= slots; ++slot) {
      const bool stays = slot >= keep_from && slot <= keep_to;
      for (std::int32_t list = first[slot] - 1; list >= 0;) {
        const std::int32_t after = next[list] - 1;
        const int rank = list / streams_;
        const int stream = list - rank * streams_;
        const int microbatch = done[list]++;
        if (microbatch + 1 < m_) {
          next[list] = first[slot + v_period];
          first[slot + v_period] = list + 1;
        }
        const int last_forward = blocks[rank].at[v_up] + v_period * (m_ - 1);
        if (stream < v_weight_upper || slot < last_forward || all)
          put(rank, stream, microbatch, stays ? slot : 0);
        list = after;
      }
    }
    for (int rank = 0; rank < p_; ++rank) to.count(rank) = lines_[rank].count();
  }
  constexpr ~v_compaction() = default;  // nvcc needs it written

 private:
  //! Ends that are remembered: an input is used within two periods after it is made.
  static constexpr int recent = 4;

  //! When the job's input is there.
  constexpr std::int32_t input_at(int rank, int stream, int microbatch) const {
    const std::int32_t* ends = ends_.data() + microbatch % recent;
    const auto end = [&](int of, int there) { return ends[(of * p_ + there) * recent]; };
    switch (stream) {
      case v_down:
        return rank > 0 ? end(v_down, rank - 1) : 0;
      case v_up:
        return rank + 1 < p_ ? end(v_up, rank + 1) : end(v_down, rank);
      case v_back_down:
        return rank > 0 ? end(v_back_down, rank - 1) : end(v_up, rank);
      case v_back_up:
        return rank + 1 < p_ ? end(v_back_up, rank + 1) : end(v_back_down, rank);
      default:
        return end(stream - 2, rank);
    }
  }

  constexpr void put(int rank, int stream, int microbatch, std::int32_t earliest) {
    const std::int32_t input = input_at(rank, stream, microbatch);
    if (input > earliest) earliest = input;
    std::int32_t* const ends = ends_.data() + (stream * p_ + rank) * recent;
    const std::int32_t last = ends[(microbatch + recent - 1) % recent];
    if (last > earliest) earliest = last;
    ends[microbatch % recent] =
        lines_[rank].put(use_, to_.order(rank), stream, earliest) + use_.width_of(stream);
  }

  int p_, m_, streams_;
  v_use use_;
  v_orders& to_;
  scratch<std::int32_t> ends_;  // of (stream, rank, micro-batch % recent)
  scratch<v_timeline> lines_;
};

}  // namespace stretto::schedule
