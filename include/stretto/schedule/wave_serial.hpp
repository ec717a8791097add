#pragma once

#include <cstdint>

#include "stretto/model/cost.hpp"
#include "stretto/model/placement.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/model/shape.hpp"
#include "stretto/model/verdict.hpp"
#include "stretto/schedule/wave_memory.hpp"

namespace stretto::schedule {

//! Whether every rank's limit has room for its micro-batches one by one, which is the least that
//! any order of them needs where micro-batches give back all that they take.
//! @return ok, or fault::over_limit: `rank` is the one that needs most of those whose limit is too
//!         small, `limit` its own, `amount` the smallest that is enough for all of them
constexpr verdict wave_limits_or_refuse(const shape& sizes, const job_table_view& table) {
  verdict found;
  wave_memory memory(sizes, table);
  for (int rank = 0; rank < sizes.ranks; ++rank) {
    if (table.limit_of(rank) == unlimited) continue;
    const std::int64_t smallest = memory.smallest(rank, sizes.microbatches);
    if (smallest <= table.limit_of(rank) || (!found.ok() && smallest <= found.amount)) continue;
    found = refuse(fault::over_limit, reason::above_limit);
    found.rank = rank;
    found.limit = table.limit_of(rank);
    found.amount = smallest;
  }
  return found;
}

//! The order that needs the least memory: micro-batches one by one.
constexpr void wave_one_by_one(const shape& sizes, job_sink& out) {
  const placement where = place(placement_kind::wave, sizes);
  for (int rank = 0; rank < sizes.ranks; ++rank)
    for (int microbatch = 0; microbatch < sizes.microbatches; ++microbatch) {
      for (int chunk = 0; chunk < sizes.chunks; ++chunk)
        out.push(rank, {where.stage_of(rank, chunk), microbatch, 0, job_kind::forward});
      for (int chunk = sizes.chunks - 1; chunk >= 0; --chunk) {
        const int stage = where.stage_of(rank, chunk);
        out.push(rank, {stage, microbatch, 0, job_kind::backward_input});
        out.push(rank, {stage, microbatch, 0, job_kind::backward_weight});
      }
    }
}

}  // namespace stretto::schedule
