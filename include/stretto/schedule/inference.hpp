#pragma once

#include <cstdint>
#include <string_view>

#include "stretto/base/scratch.hpp"
#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/dual_order.hpp"
#include "stretto/schedule/parts/microbatch_groups.hpp"
#include "stretto/schedule/parts/push_slices.hpp"

namespace stretto::schedule {

//! Forwards alone, in the order of interleaved 1F1B: evaluation, scoring, prompt processing.
//! Megatron-LM's forward_only; DeepSpeed's InferenceSchedule is v = 1. On two replicas in opposite
//! directions in the order of DualPipe's forwards. On a wave by when each could start at the
//! earliest, which, where forwards are of one length and hops take no time, no order is shorter
//! than for v <= 2 or m >= 2 p - 1: m v + 2 (p - 1) forwards where v is even, m v + p - 1 where it
//! is odd (for v <= 2 and few micro-batches 2 p + m - 1 or p + m - 1). DeepSeek-AI's
//! forward-only DualPipeV takes as long.
struct inference {
  static constexpr std::string_view name = "inference";
  static constexpr bool forward_only = true;  //!< no job has a backward
  //! Micro-batches per group: 0 for the least, min(p / k, m), else from that to m; only looped
  //! stages have groups.
  int group = 0;
  remainder_kind remainder = remainder_kind::even;
  placement_kind placement = placement_kind::looped;

  constexpr placement_kind placed() const { return placement; }
  constexpr verdict supports(const shape& sizes) const {
    const bool wave = placement == placement_kind::wave;
    const bool both_ways = placement == placement_kind::bidirectional;
    if (placement != placement_kind::looped && (group != 0 || (!wave && !both_ways)))
      return refuse(fault::unsupported, reason::placement_not_served);
    if (both_ways)
      return sizes.slices > 1 ? refuse(fault::unsupported, reason::placement_not_served)
                              : two_waves_or_refuse(sizes);
    const verdict sound = positive_or_refuse(sizes);
    return sound ? group_or_refuse(sizes, group) : sound;
  }
  constexpr int capacity(const shape& sizes) const {
    return sizes.microbatches * sizes.chunks * sizes.slices;
  }
  constexpr verdict emit(const shape& sizes, const job_table_view& table, job_sink& out) const {
    if (placement == placement_kind::bidirectional && sizes.chunks == 1) {
      for (int rank = 0; rank < sizes.ranks; ++rank) {
        dual_rank list{.out = out, .rank = rank, .forward_only = true};
        dual_order_two_ways(list, sizes.ranks, sizes.microbatches);
      }
      return {};
    }
    if (placement != placement_kind::looped) {
      write_waves(sizes, table, out);
      return {};
    }
    const auto where = place(placement, sizes);
    const auto groups = group_microbatches(sizes, group, remainder);
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      // 1. m v forwards, each slice by slice: see microbatch_groups.
      for (int k = 0; k < groups.steps(); ++k) {
        const auto [chunk, microbatch, slice] = groups.at(k);
        out.push(rank, {where.stage_of(rank, chunk), microbatch, slice, job_kind::forward});
      }
    }
    return {};
  }

 private:
  //! The forwards that are left of a stage in one direction: the next one, and its earliest start
  //! if no stage shared its rank.
  struct stream {
    std::int64_t start = 0;
    std::int64_t period = 0;  //!< the longest forward of this stage and those before, of each way
    std::int32_t microbatch = 0;
    std::int32_t end = 0;  //!< its last micro-batch, plus one
  };

  //! Each rank's forwards by their earliest starts, of those that could start together the one that
  //! has come farther. Of two directions each leaves the other room between its micro-batches.
  constexpr void write_waves(const shape& sizes, const job_table_view& table, job_sink& out) const {
    const auto where = place(placement, sizes);
    scratch<stream> streams(std::int64_t{where.ranks} * where.chunks);  // by rank and chunk
    const int last = sizes.microbatches - 1;
    const int ways = where.direction(last) + 1;
    const int ahead = (sizes.microbatches + ways - 1) / ways;
    for (int way = 0; way < ways; ++way) {
      stream at{.microbatch = way == 0 ? 0 : ahead, .end = way == 0 ? ahead : last + 1};
      for (int stage = 0; stage < where.stages(); ++stage) {
        const int rank = where.rank_of(stage, at.microbatch);
        const int chunk = where.chunk_of(stage, at.microbatch);
        const int before = stage > 0 ? where.rank_of(stage - 1, at.microbatch) : rank;
        if (rank != before) at.start += table.hops()(before, rank);
        const std::int64_t time = table.at(rank, chunk, job_kind::forward).time;
        if (time * sizes.slices * ways > at.period) at.period = time * sizes.slices * ways;
        streams[std::int64_t{rank} * where.chunks + chunk] = at;
        at.start += time > 0 ? time : 1;  // strictly later, or forwards could wait in a circle
      }
    }
    for (int rank = 0; rank < sizes.ranks; ++rank)
      for (int left = sizes.chunks * sizes.microbatches; left > 0; --left) {
        stream* next = nullptr;
        int first = -1;
        for (int chunk = where.chunks - 1; chunk >= 0; --chunk) {
          stream& of = streams[std::int64_t{rank} * where.chunks + chunk];
          if (of.microbatch < of.end && (next == nullptr || of.start < next->start))
            next = &of, first = where.stage_of(rank, chunk);
        }
        push_slices(sizes, rank, {first, next->microbatch++}, out);
        next->start += next->period;
      }
  }
};

}  // namespace stretto::schedule
