#pragma once

#include <cstdint>

#include "stretto/model/cost.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/model/verdict.hpp"
#include "stretto/schedule/parts/wave_serial.hpp"

namespace stretto::schedule {

//! Whether every rank's limit has room for its micro-batches one by one. No order needs less where
//! micro-batches give back all that they take, backwards for the weights take nothing, and none
//! ever gives back more than it has taken so far: those in flight then only add to one another, and
//! any order, left with one micro-batch alone, is one that wave_walk has to choose from.
//! @return ok, or fault::over_limit: `rank` is the one that needs most of those whose limit is too
//!         small, `limit` its own, `amount` the smallest that is enough for all of them
constexpr verdict wave_limits_or_refuse(const shape& sizes, const job_table_view& table) {
  verdict found;
  for (int rank = 0; rank < sizes.ranks; ++rank) {
    if (table.limit_of(rank) == unlimited) continue;
    const wave_walk one(sizes, table, rank);
    // Job tables need not balance: what micro-batches leave behind adds up.
    const std::int64_t kept = one.left() > 0 ? (sizes.microbatches - 1) * one.left() : 0;
    const std::int64_t smallest = table.base_of(rank) + one.need() + kept;
    if (smallest <= table.limit_of(rank) || (!found.ok() && smallest <= found.amount)) continue;
    found = refuse(fault::over_limit, reason::above_limit);
    found.rank = rank;
    found.limit = table.limit_of(rank);
    found.amount = smallest;
  }
  return found;
}

}  // namespace stretto::schedule
