#pragma once

#include <cstdint>
#include <span>

#include "stretto/assignment/concept.hpp"

namespace stretto::assignment {

//! The rule that every assignment is held against, also those that a user writes: each layer lies
//! on exactly one stage, in the order of the pipeline, and no stage is empty unless `may_be_empty`.
//! @return ok; fault::misassigned with the first stage's rank at fault and its layer
constexpr verdict covered(std::span<const layer_range> stages, int layers, const placement& where,
                          bool may_be_empty = false) {
  if (stages.size() != static_cast<std::size_t>(where.stages()))
    return misassigned(reason::counts_not_per_stage, -1, static_cast<std::int64_t>(stages.size()),
                       where.stages());
  std::int64_t next = 0;
  int stage = 0;
  for (const layer_range& held : stages) {
    const int rank = where.rank_of(stage++, 0);
    if (held.count < 0 || (held.count == 0 && !may_be_empty))
      return misassigned(reason::empty_stage, rank, held.count, may_be_empty ? 0 : 1);
    if (held.count > 0 && held.first != next)
      return held.first > next ? misassigned(reason::layer_missing, rank, next, layers)
                               : misassigned(reason::layer_twice, rank, held.first, layers);
    next += held.count;
  }
  if (next != layers) return misassigned(reason::layers_do_not_fit, -1, next, layers);
  return {};
}

}  // namespace stretto::assignment
