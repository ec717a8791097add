#pragma once

#include <cstdint>
#include <numeric>
#include <string_view>

#include "stretto/base/scratch.hpp"
#include "stretto/schedule/concept.hpp"

namespace stretto::schedule {

//! Interleaved 1F1B in small groups with split backwards: g micro-batches pass through a chunk
//! before the next chunk. With p / 2 <= g <= p, and f, b and w about as long as each other, no rank
//! keeps more than g (v - 1) + p chunk activations, for (p - g)(v - 1) more slots of bubble than
//! g = p has, which needs less memory than interleaved 1F1B at less bubble. A smaller g keeps more
//! than the least of these, because its next chunk waits until it is through all ranks. Grouped
//! interleaved schedules of PipeOffload (Wan et al. 2025).
//!
//! The order is a block of 3 g v slots, one for each forward and half backward of a group, that
//! repeats for each group: forwards go one slot a rank down, backwards two slots a rank up. In it
//! every chunk has a turn of 3 g slots.
struct grouped {
  static constexpr std::string_view name = "grouped";
  int group = 0;  //!< micro-batches per group, from 1 to p; 0: p

  constexpr placement_kind placed() const { return placement_kind::looped; }
  constexpr verdict supports(const shape& sizes) const {
    if (sizes.slices > 1) return refuse(fault::unsupported, reason::slices_not_one);
    const verdict sound = positive_or_refuse(sizes);
    if (!sound) return sound;
    if (group < 0) return refuse(fault::unsupported, reason::group_below_one);
    if (group > sizes.ranks) return refuse(fault::unsupported, reason::group_above_ranks);
    return {};
  }
  constexpr int capacity(const shape& sizes) const { return 3 * sizes.microbatches * sizes.chunks; }
  constexpr verdict emit(const shape& sizes, const job_table_view& table, job_sink& out) const {
    const int size = group > 0 ? group : sizes.ranks;
    const int steps = sizes.chunks * sizes.microbatches;
    // From a chunk to the next: as many turns as let a group get through all ranks.
    const int turns = (least_group(sizes, table) + size - 1) / size;
    const int even = sizes.chunks / std::gcd(sizes.chunks, turns);
    const auto first_turn = [&](int chunk) {
      return turns * chunk + chunk / even;  // shifted where turns would meet again
    };
    // 1. The forwards of every rank, in order. Its backwards are in the same, on mirrored chunks.
    scratch<slot> order(steps);
    scratch<int> chunk_of(sizes.chunks);
    for (int chunk = 0; chunk < sizes.chunks; ++chunk)
      chunk_of[first_turn(chunk) % sizes.chunks] = chunk;
    slot* next = order.data();
    for (int turn = 0; next < order.data() + steps; ++turn) {
      const int chunk = chunk_of[turn % sizes.chunks];
      const int since = turn - first_turn(chunk);
      if (since < 0) continue;
      const int begin = since / sizes.chunks * size;
      for (int member = 0; member < size && begin + member < sizes.microbatches; ++member)
        *next++ = {3 * (size * turn + member), chunk, begin + member};
    }
    // 2. Both of each rank, by slot: no slot is a forward's and a backward's.
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      const int later = 3 * (size * first_turn(sizes.chunks - 1) + sizes.ranks - 1 - rank) + 1;
      const slot* forward = order.data();
      const slot* const last = forward + steps;
      for (const slot* back = forward; back < last; ++back) {
        for (; forward < last && forward->number < back->number + later; ++forward)
          out.push(rank, {forward->chunk * sizes.ranks + rank, forward->microbatch, 0,
                          job_kind::forward});
        const int stage = (sizes.chunks - 1 - back->chunk) * sizes.ranks + rank;
        out.push(rank, {stage, back->microbatch, 0, job_kind::backward_input});
        out.push(rank, {stage, back->microbatch, 0, job_kind::backward_weight});
      }
    }
    return {};
  }

 private:
  //! Which slot, from that of the rank's first forward, and whose forward stands there.
  struct slot {
    std::int32_t number;
    std::int32_t chunk;
    std::int32_t microbatch;
  };

  //! The fewest micro-batches whose work on the slowest rank lasts as long as one forward, or one
  //! backward for the input, through all ranks; at least half the ranks.
  static constexpr int least_group(const shape& sizes, const job_table_view& table) {
    std::int64_t slowest = 1;
    std::int64_t down = 0;
    std::int64_t up = 0;
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      std::int64_t forward = 0;
      std::int64_t input = 0;
      std::int64_t whole = 0;
      for (int chunk = 0; chunk < sizes.chunks; ++chunk) {
        const std::int64_t f = table.at(rank, chunk, job_kind::forward).time;
        const std::int64_t b = table.at(rank, chunk, job_kind::backward_input).time;
        const std::int64_t all = f + b + table.at(rank, chunk, job_kind::backward_weight).time;
        forward = f > forward ? f : forward;
        input = b > input ? b : input;
        whole = all > whole ? all : whole;
      }
      down += forward;
      up += input;
      slowest = whole > slowest ? whole : slowest;
    }
    const std::int64_t way = down > up ? down : up;
    const std::int64_t needed = (way + slowest - 1) / slowest;
    const std::int64_t half = (sizes.ranks + 1) / 2;
    return static_cast<int>(needed > half ? needed : half);
  }
};

}  // namespace stretto::schedule
