#pragma once

#include <cstdint>

#include "stretto/base/scratch.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/schedule/parts/v_block.hpp"
#include "stretto/schedule/parts/v_orders.hpp"
#include "stretto/schedule/parts/v_timeline.hpp"

namespace stretto::schedule {

//! Puts the jobs of a V, as they come, each into the first free slots after its input and the job
//! of its stream before it: a forward only as far as no more activations are kept than a rank may.
//! A rank's jobs are kept as a list in order of time, so that the effort follows the jobs, not the
//! slots.
class v_closing {
 public:
  //! @param recent  so many micro-batches' ends are remembered of each stream, a power of two: no
  //!                job comes later than that after its input
  constexpr v_closing(const shape& sizes, const v_use& use, int recent, v_orders& to)
      : p_(sizes.ranks),
        recent_(recent),
        use_(use),
        to_(to),
        ends_(std::int64_t{recent} * v_streams * p_),
        lines_(p_) {}
  constexpr ~v_closing() = default;  // nvcc needs it written

  constexpr void put(int rank, int stream, int microbatch, std::int32_t earliest) {
    const std::int32_t input = input_at(rank, stream, microbatch);
    if (input > earliest) earliest = input;
    std::int32_t* const ends = ends_.data() + std::int64_t{recent_} * (stream * p_ + rank);
    const std::int32_t last = ends[(microbatch - 1) & (recent_ - 1)];
    if (last > earliest) earliest = last;
    ends[microbatch & (recent_ - 1)] =
        lines_[rank].put(use_, to_.order(rank), stream, earliest) + use_.width_of(stream);
  }
  //! When the job's input is there; 0: it needs none, or, where all ends are remembered, has not
  //! come.
  constexpr std::int32_t input_at(int rank, int stream, int microbatch) const {
    const std::int32_t* ends = ends_.data() + (microbatch & (recent_ - 1));
    const auto end = [&](int of, int there) {
      return ends[std::int64_t{recent_} * (of * p_ + there)];
    };
    switch (stream) {
      case v_down:
        return rank > 0 ? end(v_down, rank - 1) : 0;
      case v_up:
        return rank + 1 < p_ ? end(v_up, rank + 1) : end(v_down, rank);
      case v_back_down:
        return rank > 0 ? end(v_back_down, rank - 1) : end(v_up, rank);
      case v_back_up:
        return rank + 1 < p_ ? end(v_back_up, rank + 1) : end(v_back_down, rank);
      default:
        return end(stream - 2, rank);
    }
  }
  //! All have come.
  constexpr void finish() {
    for (int rank = 0; rank < p_; ++rank) to_.count(rank) = lines_[rank].count();
  }

 private:
  int p_;
  int recent_;
  v_use use_;
  v_orders& to_;
  scratch<std::int32_t> ends_;  // of (stream, rank, micro-batch % recent)
  scratch<v_timeline> lines_;
};

}  // namespace stretto::schedule
