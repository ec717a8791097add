#pragma once

#include "stretto/model/rows.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::check {

//! Refuses a job for standing in its list a second time, at `step`, or for having found no place
//! there (-1). Where it stands the first time is said with it, if it does.
constexpr verdict doubled(fault what, const job_rows& rows, int rank, int step, const job& work) {
  verdict found = refuse(what, reason::duplicate, rank, step, work);
  const int end = step < 0 ? rows.counts[rank] : step;
  for (int first = 0; first < end && !found.has_other; ++first) {
    const job& other = rows.at(rank, first);
    // The optimizer and the step's end stand once for all stages, a reduction once for its own.
    if (other.kind != work.kind) continue;
    if (is_of_cell(work.kind) && (other.microbatch != work.microbatch || other.slice != work.slice))
      continue;
    if ((is_of_cell(work.kind) || work.kind == job_kind::reduce_grad) && other.stage != work.stage)
      continue;
    found.other = other;
    found.has_other = true;
    found.amount = first;
  }
  return found;
}

}  // namespace stretto::check
