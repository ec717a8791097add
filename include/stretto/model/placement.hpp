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
  bidirectional,  //!< p stages in two replicas; direction 1 puts stage s on rank p - 1 - s
                  //!< (DualPipe, Chimera); the second half of the micro-batches goes that way
  table,          //!< an explicit stage -> rank list, as found in an imported schedule
};

//! Maps stages to ranks and back. `table` (stage -> rank, `table_stages` entries, kept alive by the
//! caller) is read by placement_kind::table alone.
struct placement {
  placement_kind kind = placement_kind::looped;
  int ranks = 1;
  int chunks = 1;  //!< stages that a rank holds; two for `bidirectional`, one a direction
  int microbatches = 1;
  const std::int32_t* table = nullptr;
  int table_stages = 0;

  //! Whether a table names a rank for each of its stages, and no rank more often than it has chunks.
  constexpr bool sound() const {
    if (kind != placement_kind::table) return true;
    if (table == nullptr || table_stages < 1) return false;
    scratch<std::int32_t> held(ranks);
    for (int stage = 0; stage < table_stages; ++stage)
      if (table[stage] < 0 || table[stage] >= ranks || held[table[stage]]++ == chunks) return false;
    return true;
  }
  constexpr int stages() const {
    if (kind == placement_kind::table) return table_stages;
    return kind == placement_kind::bidirectional ? ranks : ranks * chunks;
  }
  //! 0 or 1: which way through the ranks this micro-batch goes.
  constexpr int direction(int microbatch) const {
    return kind == placement_kind::bidirectional && microbatch > (microbatches - 1) / 2 ? 1 : 0;
  }
  constexpr int rank_of(int stage, int microbatch) const {
    switch (kind) {
      case placement_kind::looped: return stage % ranks;
      case placement_kind::wave:
        return (stage / ranks) % 2 == 0 ? stage % ranks : ranks - 1 - stage % ranks;
      case placement_kind::bidirectional:
        return direction(microbatch) == 0 ? stage : ranks - 1 - stage;
      case placement_kind::table: return table[stage];
    }
    return -1;
  }
  constexpr int rank_of(const job& work) const { return rank_of(work.stage, work.microbatch); }
  //! The place of the stage among its rank's stages; for `bidirectional` the direction.
  constexpr int chunk_of(int stage, int microbatch) const {
    if (kind == placement_kind::bidirectional) return direction(microbatch);
    if (kind != placement_kind::table) return stage / ranks;
    int chunk = 0;
    for (int before = 0; before < stage; ++before) chunk += table[before] == table[stage];
    return chunk;
  }
  constexpr int chunk_of(const job& work) const { return chunk_of(work.stage, work.microbatch); }
  //! The place of a stage among the rank's, in whichever direction it has it; -1: it has it not.
  //! (Of two directions the stage in the midst of an odd number of ranks is the rank's in both:
  //! that of the first.)
  constexpr int chunk_on(int rank, int stage) const {
    if (stage < 0 || stage >= stages()) return -1;
    if (rank_of(stage, 0) == rank) return chunk_of(stage, 0);
    // Of two directions the last micro-batch goes the other one.
    const int last = microbatches - 1;
    return rank_of(stage, last) == rank ? chunk_of(stage, last) : -1;
  }
  //! Whether both directions have the same stage on this rank, in the midst of an odd number.
  constexpr bool is_midst(int rank) const {
    return kind == placement_kind::bidirectional && 2 * rank + 1 == ranks;
  }
  //! The stage that is chunk `chunk` of rank `rank`; -1 when the rank has no such chunk.
  constexpr int stage_of(int rank, int chunk) const {
    switch (kind) {
      case placement_kind::looped: return chunk * ranks + rank;
      case placement_kind::wave:
        return chunk * ranks + (chunk % 2 == 0 ? rank : ranks - 1 - rank);
      case placement_kind::bidirectional: return chunk == 0 ? rank : ranks - 1 - rank;
      case placement_kind::table:
        for (int stage = 0; stage < table_stages; ++stage)
          if (table[stage] == rank && chunk-- == 0) return stage;
        return -1;
    }
    return -1;
  }
};

//! The placement of that kind for a shape; not for placement_kind::table. The shape's chunks are
//! those of one direction: one where the placement is bidirectional.
constexpr placement place(placement_kind kind, const shape& sizes) {
  return {.kind = kind,
          .ranks = sizes.ranks,
          .chunks = kind == placement_kind::bidirectional ? 2 : sizes.chunks,
          .microbatches = sizes.microbatches};
}

}  // namespace stretto
