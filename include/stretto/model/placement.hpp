#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/job.hpp"
#include "stretto/model/shape.hpp"

namespace stretto {

//! How stages are laid over ranks.
enum class placement_kind : std::uint8_t {
  looped,         //!< stage c * p + r on rank r (Megatron-LM's interleaving)
  wave,           //!< odd chunks run backwards: stage c * p + (p - 1 - r) (the V of ZB-V, Hanayo)
  bidirectional,  //!< two replicas: direction 0 lays the stages as `wave` does, direction 1 puts
                  //!< on rank p - 1 - r what that puts on r (DualPipe, Chimera; BitPipe with two
                  //!< stages a direction); the second half of the micro-batches goes that way
  table,          //!< an explicit stage -> rank list, as found in an imported schedule
};

//! Maps stages to ranks and back. `table` (stage -> rank, `table_stages` entries, kept alive by the
//! caller) is read by placement_kind::table alone.
struct placement {
  placement_kind kind = placement_kind::looped;
  int ranks = 1;
  int chunks = 1;  //!< stages that a rank holds; for `bidirectional` of both directions
  int microbatches = 1;
  const std::int32_t* table = nullptr;
  int table_stages = 0;

  //! Why it is none: there are more stages than a step can have; directions have unlike numbers of
  //! chunks; a table does not name a rank for each of its stages, or one more often than it has
  //! chunks. reason::none where all is well.
  constexpr reason flaw() const {
    if (ranks < 1) return reason::ranks_below_one;
    if (chunks < 1) return reason::chunks_below_one;
    if (chunks_one_way() > shape::most_jobs / ranks) return reason::shape_too_large;
    if (kind == placement_kind::bidirectional && chunks % 2 != 0) return reason::directions_unlike;
    if (kind != placement_kind::table) return reason::none;
    if (table == nullptr || table_stages < 1) return reason::placement_unsound;
    scratch<std::int32_t> held(ranks);
    for (int stage = 0; stage < table_stages; ++stage)
      if (table[stage] < 0 || table[stage] >= ranks || held[table[stage]]++ == chunks)
        return reason::placement_unsound;
    return reason::none;
  }
  constexpr bool sound() const { return flaw() == reason::none; }
  constexpr int stages() const {
    return kind == placement_kind::table ? table_stages : ranks * chunks_one_way();
  }
  //! Stages that a rank holds of one direction.
  constexpr int chunks_one_way() const {
    return kind == placement_kind::bidirectional ? chunks / 2 + chunks % 2 : chunks;
  }
  //! 0 or 1: which way through the ranks this micro-batch goes.
  constexpr int direction(int microbatch) const {
    return kind == placement_kind::bidirectional && microbatch > (microbatches - 1) / 2 ? 1 : 0;
  }
  constexpr int rank_of(int stage, int microbatch) const {
    if (kind == placement_kind::looped) return stage % ranks;
    if (kind == placement_kind::table) return table[stage];
    // Back and forth, from the other end in direction 1, which `wave` has not.
    return (stage / ranks + direction(microbatch)) % 2 == 0 ? stage % ranks
                                                            : ranks - 1 - stage % ranks;
  }
  constexpr int rank_of(const job& work) const { return rank_of(work.stage, work.microbatch); }
  //! The rank that has a stage in direction `way`, whether micro-batches go that way or not; where
  //! there is but one direction, in that.
  constexpr int rank_in(int way, int stage) const {
    const int first = rank_of(stage, 0);
    return kind == placement_kind::bidirectional && way == 1 ? ranks - 1 - first : first;
  }
  //! The place of the stage among its rank's stages; for `bidirectional` those of direction 0 come
  //! first.
  constexpr int chunk_of(int stage, int microbatch) const {
    if (kind == placement_kind::bidirectional)
      return direction(microbatch) * chunks_one_way() + stage / ranks;
    if (kind != placement_kind::table) return stage / ranks;
    int chunk = 0;
    for (int before = 0; before < stage; ++before) chunk += table[before] == table[stage];
    return chunk;
  }
  constexpr int chunk_of(const job& work) const { return chunk_of(work.stage, work.microbatch); }
  //! The place of a stage among the rank's, in whichever direction it has it; -1: it has it not.
  //! (Of two directions the rank in the midst of an odd number has its stages in both: that of the
  //! first.)
  constexpr int chunk_on(int rank, int stage) const {
    if (stage < 0 || stage >= stages()) return -1;
    if (rank_in(0, stage) == rank) return chunk_of(stage, 0);
    return rank_in(1, stage) == rank ? chunk_of(stage, 0) + chunks_one_way() : -1;
  }
  //! Whether the rank of the first stage has the last one, too, in whichever direction.
  constexpr bool ends_meet() const { return chunk_on(rank_of(0, 0), stages() - 1) >= 0; }
  //! Whether `next` is a stage of the rank, too, and of the direction of its chunk: then nothing is
  //! sent between the two.
  constexpr bool stays(int rank, int chunk, int next) const {
    return next >= 0 && next < stages() && rank_in(chunk / chunks_one_way(), next) == rank;
  }
  //! Whether both directions have the same stages on this rank, in the midst of an odd number.
  constexpr bool is_midst(int rank) const {
    return kind == placement_kind::bidirectional && 2 * rank + 1 == ranks;
  }
  //! The stage that is chunk `chunk` of rank `rank`; -1 when the rank has no such chunk.
  constexpr int stage_of(int rank, int chunk) const {
    switch (kind) {
      case placement_kind::looped: return chunk * ranks + rank;
      case placement_kind::wave:
        return chunk * ranks + (chunk % 2 == 0 ? rank : ranks - 1 - rank);
      case placement_kind::bidirectional: {
        const int way = chunk / chunks_one_way();
        const int turn = chunk - way * chunks_one_way();
        return turn * ranks + ((turn + way) % 2 == 0 ? rank : ranks - 1 - rank);
      }
      case placement_kind::table:
        for (int stage = 0; stage < table_stages; ++stage)
          if (table[stage] == rank && chunk-- == 0) return stage;
        return -1;
    }
    return -1;
  }
};

//! The placement of that kind for a shape; not for placement_kind::table. The shape's chunks are
//! those of one direction.
constexpr placement place(placement_kind kind, const shape& sizes) {
  return {.kind = kind,
          .ranks = sizes.ranks,
          // Of more than a step can have the double may be none, and the shape is refused.
          .chunks = kind == placement_kind::bidirectional && sizes.chunks > 0 &&
                            sizes.chunks <= shape::most_jobs
                        ? 2 * sizes.chunks
                        : sizes.chunks,
          .microbatches = sizes.microbatches};
}

}  // namespace stretto
