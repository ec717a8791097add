#pragma once

#include <cstdint>
#include <limits>

#include "stretto/base/scratch.hpp"
#include "stretto/model/rows.hpp"

namespace stretto::lowering {

//! When a job ends, and when the replay ran it.
struct job_end {
  std::int64_t time;
  std::int64_t turn;
};

//! The nodes of all lists (a pair is one) in one order: by the time at which they end, ties as the
//! replay ran them, so that causes stay before effects. A tree of losers (Knuth, The Art of
//! Computer Programming, volume 3, 5.4.1): one comparison a level where a heap has two.
class node_queue {
 public:
  //! @param ends  job i of rank r has ends[r * rows.stride + i]; kept by the caller
  constexpr node_queue(const job_rows& rows, const job_end* ends)
      : rows_(rows),
        ends_(ends),
        losers_(rows.ranks),
        loser_(losers_.data()),
        cursors_(rows.ranks),
        cursor_(cursors_.data()) {
    for (int rank = 0; rank < rows.ranks; ++rank) play(rank);
  }
  constexpr ~node_queue() = default;  // nvcc does not find it constexpr by itself

  //! @param ranks  filled with the rank of each node; room for all jobs
  //! @return how many nodes there are
  constexpr std::int64_t write(std::int32_t* ranks) {
    std::int32_t* next = ranks;
    while (first_.end.time < never) {
      const std::int32_t rank = *next++ = first_.rank;
      const std::int32_t at = cursor_[rank]++;
      if (rows_.items[std::int64_t{rank} * rows_.stride + at].paired &&
          at + 1 < rows_.counts[rank])
        ++cursor_[rank];
      play(rank);
    }
    return next - ranks;
  }

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  struct player {
    job_end end{never, never};
    std::int32_t rank = -1;  // nobody has come
  };

  //! The rank comes with the node at its cursor, or behind all others with none. From its leaf up:
  //! whoever loses stays, and the winner of all is first. At the beginning the first to come to a
  //! place waits there for the other.
  constexpr void play(std::int32_t rank) {
    player mine;
    mine.rank = rank;
    const std::int32_t at = cursor_[rank];
    if (at < rows_.counts[rank]) mine.end = ends_[std::int64_t{rank} * rows_.stride + at];
    for (int place = (rank + rows_.ranks) / 2; place > 0; place /= 2) {
      player its = loser_[place];
      if (its.rank < 0) {
        loser_[place] = mine;
        return;
      }
      if (its.end.time != mine.end.time ? its.end.time > mine.end.time
                                        : its.end.turn >= mine.end.turn)
        continue;
      loser_[place] = mine;
      mine = its;
    }
    first_ = mine;
  }

  job_rows rows_;
  const job_end* ends_;
  scratch<player> losers_;
  player* loser_;  // of each place but the leaves
  scratch<std::int32_t> cursors_;
  std::int32_t* cursor_;
  player first_{};
};

}  // namespace stretto::lowering
