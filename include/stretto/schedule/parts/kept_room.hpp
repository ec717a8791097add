#pragma once

#include <cstddef>
#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"
#include "stretto/model/shape.hpp"

namespace stretto::schedule {

//! What a rank's jobs take of its memory, each in the chunk where that is most.
struct kept_memory {
  std::int64_t one = 0;    //!< what a micro-batch of a chunk keeps
  std::int64_t above = 0;  //!< what a job needs beside all that is kept
};

constexpr kept_memory kept_memory_of(const job_table_view& table, int rank) {
  kept_memory found;
  for (int chunk = 0; chunk < table.chunks; ++chunk) {
    std::int64_t kept = 0;
    for (const job_kind kind :
         {job_kind::forward, job_kind::backward_input, job_kind::backward_weight}) {
      const job_cost& cost = table.at(rank, chunk, kind);
      const std::int64_t beside = kind == job_kind::forward ? cost.peak - cost.change : cost.peak;
      if (beside > found.above) found.above = beside;
      kept += cost.change;
      if (kept > found.one) found.one = kept;
    }
  }
  return found;
}

//! The job table with less room for what ranks keep. A search tries its rules in several rooms, the
//! smallest first, because a greedy pass takes the memory that it is given, and with more of it the
//! step is often no shorter. Room 0 is what 1F1B keeps on its first rank, p micro-batches of all of
//! its chunks (2p of one chunk, as ZB-2p of Qi et al. 2023); room 1 twice that; room 2 the limits.
//! Where one of them has all that the limits allow, the next has that less one of a chunk: what is
//! found with a little less memory is then seldom lost.
class kept_room {
 public:
  static constexpr int count = 3;
  static constexpr int one_less = count;  //!< beyond those: the limits less one of a chunk

  constexpr kept_room(const shape& sizes, const job_table_view& table, int room)
      : limits_(sizes.ranks), table_(table) {
    table_.limit = {limits_.data(), static_cast<std::size_t>(sizes.ranks)};
    const bool less = room > 0 && has_all(sizes, table, room - 1);
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      limits_[rank] = limit_of(sizes, table, rank, room);
      if (less && is_tight(sizes, table, rank)) limits_[rank] -= kept_memory_of(table, rank).one;
    }
  }
  constexpr ~kept_room() = default;  // nvcc needs it written

  constexpr const job_table_view& table() const { return table_; }

  //! Whether the room before is the same.
  static constexpr bool repeats(const shape& sizes, const job_table_view& table, int room) {
    if (room == 0 || !has_all(sizes, table, room - 1)) return false;
    if (room > 1 && has_all(sizes, table, room - 2)) return true;
    return !is_tight(sizes, table);
  }

  //! Whether some rank can keep more than one micro-batch, but not all.
  static constexpr bool is_tight(const shape& sizes, const job_table_view& table) {
    for (int rank = 0; rank < sizes.ranks; ++rank)
      if (is_tight(sizes, table, rank)) return true;
    return false;
  }

  //! The smallest room that has all that the limits allow.
  static constexpr int widest(const shape& sizes, const job_table_view& table) {
    int room = 0;
    while (!has_all(sizes, table, room)) ++room;
    return room;
  }

 private:
  static constexpr bool has_all(const shape& sizes, const job_table_view& table, int room) {
    for (int rank = 0; rank < sizes.ranks; ++rank)
      if (limit_of(sizes, table, rank, room) < table.limit_of(rank)) return false;
    return true;
  }
  static constexpr bool is_tight(const shape& sizes, const job_table_view& table, int rank) {
    const kept_memory of = kept_memory_of(table, rank);
    const std::int64_t all = std::int64_t{sizes.chunks} * sizes.microbatches;
    const std::int64_t limit = table.limit_of(rank);
    if (limit == unlimited || of.one <= 0) return false;
    const std::int64_t most = (limit - table.base_of(rank) - of.above) / of.one;
    return most > sizes.chunks && most < all;
  }
  static constexpr std::int64_t limit_of(const shape& sizes, const job_table_view& table, int rank,
                                         int room) {
    const std::int64_t limit = table.limit_of(rank);
    const std::int64_t all = std::int64_t{sizes.chunks} * sizes.microbatches;
    const std::int64_t kept = std::int64_t{sizes.chunks > 2 ? sizes.chunks : 2} * sizes.ranks
                              << room;
    if (room + 1 >= count || kept >= all) return limit;
    const kept_memory of = kept_memory_of(table, rank);
    const std::int64_t taken = table.base_of(rank) + of.above;
    const std::int64_t free = limit == unlimited ? unlimited / 4 : limit - taken;
    return of.one > 0 && free / kept >= of.one ? taken + kept * of.one : limit;
  }

  scratch<std::int64_t> limits_;
  job_table_view table_;
};

}  // namespace stretto::schedule
