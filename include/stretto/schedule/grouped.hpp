#pragma once

#include <cstdint>
#include <numeric>
#include <string_view>

#include "stretto/base/scratch.hpp"
#include "stretto/schedule/concept.hpp"

namespace stretto::schedule {

//! Interleaved 1F1B in small groups with split backwards: g micro-batches pass through a chunk
//! before the next chunk, so that rank 0 keeps about g (v - 1) + p chunk activations for
//! (p - g)(v - 1) more slots of bubble. g = p needs less memory than interleaved 1F1B at less
//! bubble. Grouped interleaved schedules of PipeOffload (Wan et al. 2025).
//!
//! The order is a block of 3 g v slots, one for each forward and half backward of a group, that
//! repeats for each group: forwards go one slot a rank down, backwards two slots a rank up.
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
    const int length = 3 * size * sizes.chunks;
    // From a chunk to the next: as many blocks as let a group get through all ranks.
    const int blocks = (least_group(sizes, table) + size - 1) / size;
    const int even = sizes.chunks / std::gcd(sizes.chunks, blocks);
    const auto chunk_offset = [&](int chunk) {
      return 3 * size * (blocks * chunk + chunk / even);  // shifted where slots would meet again
    };
    scratch<slot> block(length);
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      const int backward = rank + chunk_offset(sizes.chunks - 1) + 3 * (sizes.ranks - 1 - rank) + 1;
      int laps = 0;
      const auto lay = [&](int offset, job_kind kind, int chunk, int member) {
        const int lap = offset / length;
        block[offset % length] = {kind, chunk * sizes.ranks + rank, member, lap};
        if (lap > laps) laps = lap;
      };
      for (int chunk = 0; chunk < sizes.chunks; ++chunk)
        for (int member = 0; member < size; ++member) {
          const int offset = chunk_offset(chunk) + 3 * member;
          const int mirror = sizes.chunks - 1 - chunk;
          lay(rank + offset, job_kind::forward, chunk, member);
          lay(backward + offset, job_kind::backward_input, mirror, member);
          lay(backward + offset + 1, job_kind::backward_weight, mirror, member);
        }
      const int rounds = (sizes.microbatches + size - 1) / size + laps;
      for (int round = 0; round < rounds; ++round)
        for (int at = 0; at < length; ++at) {
          const slot& one = block[at];
          const int microbatch = (round - one.lap) * size + one.member;
          if (round >= one.lap && microbatch < sizes.microbatches)
            out.push(rank, {one.stage, microbatch, 0, one.kind});
        }
    }
    return {};
  }

 private:
  //! What stands in a slot of the block, and how many blocks after its group's first.
  struct slot {
    job_kind kind;
    std::int32_t stage;
    std::int32_t member;
    std::int32_t lap;
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
