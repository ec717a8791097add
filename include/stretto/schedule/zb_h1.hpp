#pragma once

#include <cstdint>
#include <string_view>

#include "stretto/schedule/concept.hpp"
#include "stretto/schedule/parts/late_weights.hpp"

namespace stretto::schedule {

//! Which backwards are split into one for the input and one for the weights.
enum class split_kind : std::uint8_t {
  full,     //!< all of them
  partial,  //!< r + 1 on rank r > 0, none on rank 0 (Paddle), which leaves more bubble
};

//! Zero bubble with 1F1B's memory: rank r puts off its backwards for the weights by r rounds, which
//! fills the end of the step: with all of them split a bubble of (p - 1)(f + b - min(f, b, w))
//! where m >= p, with p micro-batches alive on every rank; in k slices, whose costs are those of
//! one, p + k
//! - 1 slices. ZB-H1 (Qi et al. 2023); the partial split is Paddle's, which wants m >= p and cuts
//!   no
//! slices; here any m.
struct zb_h1 {
  static constexpr std::string_view name = "zb_h1";
  split_kind split = split_kind::full;

  constexpr placement_kind placed() const { return placement_kind::looped; }
  constexpr verdict supports(const shape& sizes) const {
    return split == split_kind::full ? one_sliced_chunk_or_refuse(sizes)
                                     : one_chunk_or_refuse(sizes);
  }
  constexpr int capacity(const shape& sizes) const { return 3 * sizes.microbatches * sizes.slices; }
  constexpr verdict emit(const shape& sizes, const job_table_view&, job_sink& out) const {
    for (int rank = 0; rank < sizes.ranks; ++rank) {
      if (split == split_kind::full)
        push_late_weights(sizes, rank, sizes.ranks - rank, rank, out);
      else
        push_partial(sizes, rank, out);
    }
    return {};
  }

 private:
  static constexpr void push_partial(const shape& sizes, int rank, job_sink& out) {
    const int count = sizes.microbatches;
    const int late = rank < count - 1 ? rank : count - 1;
    push_late_weights(sizes, rank, sizes.ranks - rank, late, out, late_kind::first,
                      [&](int k) { return rank == 0 || k + 1 < count; });
  }
};

}  // namespace stretto::schedule
