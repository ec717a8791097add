#pragma once

#include "stretto/check/issued.hpp"
#include "stretto/plan/planned.hpp"

//! What the rules of lists with messages say of others than a plan was written from.
namespace unit {

//! @param made   of jobs that all take the same, in one slice
//! @param lists  in place of its own
inline stretto::verdict judged(const stretto::planned& made, const stretto::job_rows& lists) {
  struct nobody : stretto::replay_observer {} watch;
  stretto::replay_input issued = made.issued();
  issued.rows = lists;
  const stretto::job_table table(lists.ranks, made.where().chunks);
  issued.costs = table.view();
  stretto::replay_input compute = issued;
  compute.rows = made.jobs();
  compute.messages = false;
  compute.groups = {};
  return stretto::check::issued(compute, issued, made.order(), watch);
}

}  // namespace unit
