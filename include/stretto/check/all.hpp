#pragma once

#include <span>

#include "stretto/check/as_listed.hpp"
#include "stretto/check/bounded.hpp"
#include "stretto/check/complete.hpp"
#include "stretto/check/cut.hpp"
#include "stretto/check/issued.hpp"
#include "stretto/check/live.hpp"
#include "stretto/check/op_by_op.hpp"
#include "stretto/check/ordered.hpp"
#include "stretto/check/own_buffers.hpp"
#include "stretto/check/race_free.hpp"
#include "stretto/check/rendezvous.hpp"
#include "stretto/check/resident.hpp"
#include "stretto/check/sharded.hpp"
#include "stretto/check/spare.hpp"
#include "stretto/check/timely.hpp"
#include "stretto/model/costs_fit.hpp"

namespace stretto::check {

//! The rules that job lists must keep, in order; the first that is broken. Lists with messages also
//! meet the rendezvous rule.
//! @return ok, what a rule says, or fault::unsupported for more jobs than a step may have, or a job
//!         table that does not fit (stretto::costs_fit)
constexpr verdict schedule(const replay_input& input, lists_of of = lists_of::anything) {
  const placement& where = input.where;
  if (positive({where.ranks, input.microbatches, where.chunks, input.slices}) ==
      reason::shape_too_large)
    return refuse(fault::unsupported, reason::shape_too_large);
  if (const verdict found = complete(input, of); !found.ok()) return found;
  if (const verdict found = costs_fit(input.costs, where, input.microbatches, input.slices);
      !found.ok())
    return found;
  if (const verdict found = ordered(input); !found.ok()) return found;
  if (const verdict found = input.messages ? rendezvous(input) : live(input); !found.ok())
    return found;
  return bounded(input);
}

//! Rule `complete` of the plans of all ranks. It comes first: what orders plans is read from what
//! their lists say.
//! @param lists  with messages: what they were written from
constexpr verdict as_listed(std::span<const plan_view> written, const replay_input& lists) {
  for (const plan_view& plan : written) {
    if (const verdict found = as_listed(plan, lists); !found.ok()) return found;
    if (const verdict found = op_by_op(plan, lists); !found.ok()) return found;
  }
  return {};
}

//! What each instruction touches is its own, in the plans of all ranks, which are of whole jobs.
constexpr verdict own_buffers(std::span<const plan_view> written) {
  for (const plan_view& plan : written)
    if (const verdict found = own_buffers(plan); !found.ok()) return found;
  return {};
}

//! The other rules that written plans must keep, over the ranks from `rank` to before `end`; the
//! first that is broken.
constexpr verdict plans(std::span<const plan_view> written, lowering::clock_rows known, int rank,
                        int end) {
  for (; rank < end; ++rank) {
    if (const verdict found = cut(written, rank); !found.ok()) return found;
    if (const verdict found = race_free(written, known, rank); !found.ok()) return found;
    if (const verdict found = resident(written, known, rank); !found.ok()) return found;
    if (const verdict found = timely(written, known, rank); !found.ok()) return found;
    if (const verdict found = spare(written, known, rank); !found.ok()) return found;
  }
  return {};
}
//! Over all ranks.
constexpr verdict plans(std::span<const plan_view> written, lowering::clock_rows known) {
  return plans(written, known, 0, known.ranks);
}

}  // namespace stretto::check
