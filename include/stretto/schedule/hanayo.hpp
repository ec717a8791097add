#pragma once

#include <cstdint>
#include <string_view>

#include "stretto/base/scratch.hpp"
#include "stretto/schedule/concept.hpp"

namespace stretto::schedule {

//! Waves: the chunks of a micro-batch go down the ranks and up again, v / 2 times, so that at the
//! turns nothing is sent. With v even, and with v = 1, which is 1F1B, no rank ever keeps more than
//! 1F1B's p v chunk activations, whatever m; with any other odd v at most p more. Hanayo (Liu et
//! al. 2023), which has v = 2 W chunks for W waves, and m = p; here any v and m.
//!
//! A slot has room for a forward and a backward. Groups of p micro-batches start every p v slots;
//! in a group, micro-batch j runs the forward of stage s in slot 2 j + s and its backward in slot
//! 2 j + 2 (p v - 1) - s, without a pause from stage to stage. On a rank, stages that go down have
//! the slots of one parity and stages that go up the others, so with v even no two of a kind meet.
//! Then, and with p | m, the step takes (m v + p - 1)(f + b) and p - 1 more forwards (b = 2 f):
//! interleaved 1F1B does without these, for p - 1 more activations. A short last group takes as
//! long as a full one.
struct hanayo {
  static constexpr std::string_view name = "hanayo";

  constexpr placement_kind placed() const { return placement_kind::wave; }
  constexpr verdict supports(const shape& sizes) const {
    if (sizes.slices > 1) return refuse(fault::unsupported, reason::slices_not_one);
    return positive_or_refuse(sizes);
  }
  constexpr int capacity(const shape& sizes) const { return 2 * sizes.microbatches * sizes.chunks; }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    const placement where = place(placement_kind::wave, sizes);
    const rhythm beat = rhythm_of(sizes);
    const int chunks = sizes.chunks;
    const int last = where.stages() - 1;
    scratch<stream> streams(2 * std::int64_t{chunks});
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      for (int chunk = 0; chunk < chunks; ++chunk) {
        const int stage = where.stage_of(rank, chunk);
        const std::int64_t down = beat.down * stage;
        const std::int64_t up = beat.down * last + 1 + beat.up * (last - stage);
        streams[2 * chunk] = {down, stage, 0, 0, job_kind::forward};
        streams[2 * chunk + 1] = {up, stage, 0, 0, job_kind::backward};
      }
      // The rank's jobs in the order of their times, from one ascending stream for each.
      const stream* const end = streams.data() + 2 * chunks;
      for (int left = 2 * chunks * sizes.microbatches; left > 0; --left) {
        stream* first = streams.data();
        for (stream* other = first + 1; other != end; ++other)
          if (other->microbatch < sizes.microbatches &&
              (other->time < first->time || first->microbatch == sizes.microbatches))
            first = other;
        out.push(rank, {first->stage, first->microbatch++, 0, first->kind});
        first->time += beat.next;
        if (++first->member == sizes.ranks) {
          first->member = 0;
          first->time += beat.group - beat.next * sizes.ranks;
        }
      }
    }
    return {};
  }

 private:
  //! In thirds of a slot: a forward takes one, a backward two.
  struct rhythm {
    std::int64_t down;   //!< from a stage's forward to the next stage's
    std::int64_t up;     //!< from a stage's backward to the one's before
    std::int64_t next;   //!< from a micro-batch to the next of its group
    std::int64_t group;  //!< from a group to the next
  };
  static constexpr rhythm rhythm_of(const shape& sizes) {
    if (sizes.chunks == 1) return {1, 2, 3, 3 * std::int64_t{sizes.ranks}};
    return {3, 3, 6, 3 * std::int64_t{sizes.ranks} * sizes.chunks};
  }

  //! The jobs of one stage and kind that are left: the next one, and when it is due.
  struct stream {
    std::int64_t time;
    std::int32_t stage;
    std::int32_t microbatch;
    std::int32_t member;  //!< of its group
    job_kind kind;
  };
};

}  // namespace stretto::schedule
