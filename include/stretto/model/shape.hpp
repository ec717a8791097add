#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>

#include "stretto/base/fault.hpp"

namespace stretto {

//! The size of a pipelined step: `ranks` places, each holding `chunks` stages, through which
//! `microbatches` micro-batches pass, each cut along the sequence into `slices`.
struct shape {
  int ranks = 1;
  int microbatches = 1;
  int chunks = 1;
  int slices = 1;

  //! No step has more jobs of a kind: what plans count, 81 times that at most, stays in an int.
  static constexpr std::int64_t most_jobs = std::int64_t{1} << 24;

  constexpr bool operator==(const shape&) const = default;
};

//! reason::none when every size is at least one, and a step is no larger than one can be.
constexpr reason positive(const shape& sizes) {
  if (sizes.ranks < 1) return reason::ranks_below_one;
  if (sizes.microbatches < 1) return reason::microbatches_below_one;
  if (sizes.chunks < 1) return reason::chunks_below_one;
  if (sizes.slices < 1) return reason::slices_below_one;
  if (sizes.slices > std::numeric_limits<std::int16_t>::max()) return reason::shape_too_large;
  std::int64_t jobs = sizes.ranks;  // a product with one more stays in 64 bits
  for (const int size : {sizes.microbatches, sizes.chunks, sizes.slices})
    if ((jobs *= size) > shape::most_jobs) return reason::shape_too_large;
  return reason::none;
}

}  // namespace stretto
