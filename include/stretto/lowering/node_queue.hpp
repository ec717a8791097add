#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/job_ends.hpp"
#include "stretto/model/rows.hpp"

namespace stretto::lowering {

//! The nodes of all lists (a pair is one) in one order: by the time at which they end, ties as the
//! replay ran them, so that causes stay before effects.
class node_queue {
 public:
  //! @param ends  as note_ends filled them, kept by the caller
  constexpr node_queue(const job_rows& rows, const job_end* ends)
      : rows_(rows),
        ends_(ends),
        heaps_(rows.ranks),
        heap_(heaps_.data()),
        cursors_(rows.ranks),
        cursor_(cursors_.data()),
        keys_(rows.ranks),
        key_(keys_.data()) {
    for (int rank = 0; rank < rows.ranks; ++rank) {
      if (rows.counts[rank] == 0) continue;
      key_[rank] = ends[static_cast<std::int64_t>(rank) * rows.stride];
      heap_[size_++] = rank;
    }
    for (int top = size_ / 2 - 1; top >= 0; --top) settle(top);
  }
  constexpr ~node_queue() = default;  // nvcc does not find it constexpr by itself

  constexpr bool empty() const { return size_ == 0; }
  //! The next node: its rank, and where it begins in that rank's list.
  struct node {
    std::int32_t rank = 0;
    std::int32_t at = 0;
  };
  constexpr node front() const { return {heap_[0], cursor_[heap_[0]]}; }
  //! It, of so many jobs, has had its turn.
  constexpr void pop(int jobs) {
    const std::int32_t rank = heap_[0];
    const std::int32_t at = cursor_[rank] += jobs;
    if (at == rows_.counts[rank]) heap_[0] = heap_[--size_];
    else key_[rank] = ends_[std::int64_t{rank} * rows_.stride + at];
    if (size_ > 0) settle(0);
  }

 private:
  //! A binary heap of ranks, by the first job of the node at each rank's cursor.
  constexpr void settle(int top) {
    const std::int32_t rank = heap_[top];
    const job_end mine = key_[rank];
    for (int child = 2 * top + 1; child < size_; child = 2 * top + 1) {
      job_end least = key_[heap_[child]];
      if (child + 1 < size_) {
        const job_end right = key_[heap_[child + 1]];
        if (right.time != least.time ? right.time < least.time : right.turn < least.turn)
          least = right, ++child;
      }
      if (least.time != mine.time ? least.time > mine.time : least.turn > mine.turn) break;
      heap_[top] = heap_[child], top = child;
    }
    heap_[top] = rank;
  }

  job_rows rows_;
  const job_end* ends_;
  scratch<std::int32_t> heaps_;
  std::int32_t* heap_;
  scratch<std::int32_t> cursors_;
  std::int32_t* cursor_;
  scratch<job_end> keys_;
  job_end* key_;
  int size_ = 0;
};

}  // namespace stretto::lowering
