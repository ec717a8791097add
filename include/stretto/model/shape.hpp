#pragma once

#include "stretto/base/fault.hpp"

namespace stretto {

//! The size of a pipelined step: `ranks` places, each holding `chunks` stages, through which
//! `microbatches` micro-batches pass, each cut along the sequence into `slices`.
struct shape {
  int ranks = 1;
  int microbatches = 1;
  int chunks = 1;
  int slices = 1;

  constexpr bool operator==(const shape&) const = default;
};

//! reason::none when every size is at least one.
constexpr reason positive(const shape& sizes) {
  if (sizes.ranks < 1) return reason::ranks_below_one;
  if (sizes.microbatches < 1) return reason::microbatches_below_one;
  if (sizes.chunks < 1) return reason::chunks_below_one;
  if (sizes.slices < 1) return reason::slices_below_one;
  return reason::none;
}

}  // namespace stretto
