#pragma once

#include <string_view>

#include "stretto/base/scratch.hpp"
#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/bitpipe_clock.hpp"

namespace stretto::schedule {

//! BitPipe: two replicas of the model in opposite directions, as in Chimera, each laid as a wave of
//! v chunks, half of the micro-batches to each, with whole backwards. Bubble (p - 2) b of one chunk
//! where b = 2 f and m is a multiple of p, which is Chimera's divided by v; at most the activations
//! of p stages, v p chunks, and weights twice. Wu et al. 2024, "BitPipe: Bidirectional Interleaved
//! Pipeline Parallelism" (arXiv 2410.19367; wuhouming/BitPipe), whose units of p micro-batches
//! follow one another with bubbles in between. An even number of ranks, any m and v.
//!
//! A unit is p micro-batches, half of them each way. Forward i of a direction has slot 2 i + s in
//! stage s: no two of a rank have the same. A step of one unit is the authors': a rank's forwards
//! by their slots, its backwards by 2 i - s, which begin among the last forwards. Of more the jobs
//! stand as they can start if a backward takes twice as long as a forward: forwards first, by unit
//! and chunk, while there is room for what they keep.
struct bitpipe {
  static constexpr std::string_view name = "bitpipe";

  constexpr placement_kind placed() const { return placement_kind::bidirectional; }
  constexpr verdict supports(const shape& sizes) const { return two_waves_or_refuse(sizes); }
  constexpr int capacity(const shape& sizes) const { return 2 * sizes.chunks * sizes.microbatches; }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    const placement where = place(placed(), sizes);
    if (sizes.microbatches == sizes.ranks)
      for (int rank = 0; rank < sizes.ranks; ++rank) write_unit(where, rank, out);
    else
      bitpipe_clock(where).run(out);
    return {};
  }

 private:
  static constexpr void write_unit(const placement& where, int rank, job_sink& out) {
    scratch<two_way_stream> streams(where.chunks);
    open_streams(where, rank, &streams[0]);
    const auto push = [&](bool back) {
      two_way_stream* first = nullptr;
      int least = 0;
      for (int chunk = 0; chunk < where.chunks; ++chunk) {
        two_way_stream& of = streams[chunk];
        const int done = back ? of.backwards : of.forwards;
        const int slot = back ? 2 * done - of.stage : 2 * done + of.stage;
        if (done < of.count && (first == nullptr || slot < least)) first = &of, least = slot;
      }
      out.push(rank, first->next(back));
    };
    const int half = where.ranks / 2;
    const int jobs = where.ranks * where.chunks_one_way();  // of a kind
    const int among = rank < half ? half - rank : rank - half + 1;
    for (int k = 0; k < jobs - among; ++k) push(false);
    for (int k = 0; k < among; ++k) {
      push(false);
      push(true);
    }
    for (int k = among; k < jobs; ++k) push(true);
  }
};

}  // namespace stretto::schedule
