#pragma once

#include "stretto/model/rows.hpp"
#include "stretto/model/verdict.hpp"

namespace stretto::check {

//! Whether two jobs are one and the same, which a list holds once: the optimizer and the step's end
//! stand for all stages, a sum for its group, whose number is in the place of a micro-batch's.
constexpr bool same_place(const job& one, const job& other) {
  if (one.kind != other.kind) return false;
  if (one.kind == job_kind::optimizer || one.kind == job_kind::end_step) return true;
  return one.microbatch == other.microbatch && one.slice == other.slice &&
         (one.stage == other.stage || one.kind == job_kind::all_reduce);
}

//! Refuses a job for standing in its list a second time, at `step`, or for having found no place
//! there (-1). Where it stands the first time is said with it, if it does.
constexpr verdict doubled(fault what, const job_rows& rows, int rank, int step, const job& work) {
  verdict found = refuse(what, reason::duplicate, rank, step, work);
  const int end = step < 0 ? rows.counts[rank] : step;
  for (int first = 0; first < end && !found.has_other; ++first) {
    const job& other = rows.at(rank, first);
    if (!same_place(other, work)) continue;
    found.other = other;
    found.has_other = true;
    found.amount = first;
  }
  return found;
}

}  // namespace stretto::check
