#pragma once

#include <cstdint>
#include <limits>

#include "stretto/base/scratch.hpp"
#include "stretto/lowering/job_ends.hpp"
#include "stretto/model/rows.hpp"

namespace stretto::lowering {

//! The nodes of all lists (a pair is one) in one order: by the time at which they end, ties as the
//! replay ran them, so that causes stay before effects. A tree of losers (Knuth, The Art of Computer
//! Programming, volume 3, 5.4.1): one comparison a level where a heap has two.
class node_queue {
 public:
  //! @param ends  as note_ends filled them, kept by the caller
  constexpr node_queue(const job_rows& rows, const job_end* ends)
      : rows_(rows),
        ends_(ends),
        losers_(rows.ranks),
        loser_(losers_.data()),
        cursors_(rows.ranks),
        cursor_(cursors_.data()),
        keys_(rows.ranks),
        key_(keys_.data()) {
    for (int rank = 0; rank < rows.ranks; ++rank) come(rank);
    for (int rank = 0; rank < rows.ranks; ++rank) {
      if (rows.counts[rank] > 0) ++left_;
      play(rank);
    }
  }
  constexpr ~node_queue() = default;  // nvcc does not find it constexpr by itself

  constexpr bool empty() const { return left_ == 0; }
  //! The rank of the next node,
  constexpr std::int32_t front() const { return first_; }
  //! and where it begins in that rank's list.
  constexpr std::int32_t begin() const { return cursor_[first_]; }
  //! It, of so many jobs, has had its turn.
  constexpr void pop(int jobs) {
    const std::int32_t rank = first_;
    cursor_[rank] += jobs;
    if (cursor_[rank] == rows_.counts[rank]) --left_;
    come(rank);
    play(rank);
  }

 private:
  //! The rank comes with the node at its cursor, or behind all others with none.
  constexpr void come(std::int32_t rank) {
    constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
    const std::int32_t at = cursor_[rank];
    if (at < rows_.counts[rank]) key_[rank] = ends_[std::int64_t{rank} * rows_.stride + at];
    else key_[rank] = {never, never};
  }
  //! From its leaf up: whoever loses stays, and the winner of all is first. At the beginning the
  //! first to come to a place waits there for the other.
  constexpr void play(std::int32_t rank) {
    job_end mine = key_[rank];
    for (int place = (rank + rows_.ranks) / 2; place > 0; place /= 2) {
      const std::int32_t other = loser_[place] - 1;
      if (other < 0) {
        loser_[place] = rank + 1;
        return;
      }
      job_end its = key_[other];
      if (its.time != mine.time ? its.time > mine.time : its.turn >= mine.turn) continue;
      loser_[place] = rank + 1;
      rank = other, mine = its;
    }
    first_ = rank;
  }

  job_rows rows_;
  const job_end* ends_;
  scratch<std::int32_t> losers_;
  std::int32_t* loser_;  // rank plus one, of each place but the leaves; 0: nobody has come
  scratch<std::int32_t> cursors_;
  std::int32_t* cursor_;
  scratch<job_end> keys_;
  job_end* key_;
  std::int32_t first_ = 0;
  int left_ = 0;  // lists with nodes
};

}  // namespace stretto::lowering
