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
//! by their slots, its backwards by 2 i - s, which begin among the last forwards; one of less is
//! the same without the micro-batches that there are not. Of more the jobs stand as they can start
//! if a backward takes twice as long as a forward: forwards first, by unit and chunk, while there
//! is room for what they keep.
struct bitpipe {
  static constexpr std::string_view name = "bitpipe";

  constexpr placement_kind placed() const { return placement_kind::bidirectional; }
  constexpr verdict supports(const shape& sizes) const { return two_waves_or_refuse(sizes); }
  constexpr int capacity(const shape& sizes) const { return 2 * sizes.chunks * sizes.microbatches; }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    const placement where = place(placed(), sizes);
    if (sizes.microbatches <= sizes.ranks)
      for (int rank = 0; rank < sizes.ranks; ++rank) write_unit(where, rank, out);
    else
      bitpipe_clock(where).run(out);
    return {};
  }

 private:
  static constexpr void write_unit(const placement& where, int rank, job_sink& out) {
    const int half = where.ranks / 2;
    const int jobs = where.ranks * where.chunks_one_way();  // of a kind, in a whole unit
    const int among = rank < half ? half - rank : rank - half + 1;
    scratch<two_way_stream> streams(where.chunks);
    open_streams(where, rank, &streams[0]);
    const auto slot_of = [](const two_way_stream& of, bool back) {
      return back ? 2 * of.backwards - of.stage : 2 * of.forwards + of.stage;
    };
    const auto next_of = [&](bool back) {
      two_way_stream* first = nullptr;
      for (int chunk = 0; chunk < where.chunks; ++chunk) {
        two_way_stream& of = streams[chunk];
        if ((back ? of.backwards : of.forwards) < of.count &&
            (first == nullptr || slot_of(of, back) < slot_of(*first, back)))
          first = &of;
      }
      return first;
    };
    // The place in the list of a whole unit: forwards, of the last `among` each before a backward.
    const auto place_of = [&](const two_way_stream& of, bool back) {
      int before = 0;  // of the kind
      for (int chunk = 0; chunk < where.chunks; ++chunk) {
        const int stage = streams[chunk].stage;
        const int ahead = slot_of(of, back) - (back ? -stage : stage);
        before += ahead <= 0 ? 0 : ahead / 2 >= half ? half : (ahead + 1) / 2;
      }
      if (!back) return before < jobs - among ? before : 2 * before - (jobs - among);
      return before < among ? jobs - among + 2 * before + 1 : jobs + before;
    };
    for (;;) {
      two_way_stream* const forward = next_of(false);
      two_way_stream* const backward = next_of(true);
      if (backward == nullptr) return;
      const bool back = forward == nullptr || place_of(*backward, true) < place_of(*forward, false);
      out.push(rank, (back ? backward : forward)->next(back));
    }
  }
};

}  // namespace stretto::schedule
