// The plan's first forward is of another micro-batch than its list's.
// expected: stretto: incomplete: a job is missing, doubled, misplaced or out of range
// expected: <stretto::fault::incomplete, stretto::reason::not_as_listed, 0, 0, stretto::job_kind::forward, 0, 1>
#include "stretto/plan/accepted.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/spoilt_plan.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3},
                               stretto::schedule::one_f_one_b>;
// Rank 0 begins with 0F0.
struct spoil {
  constexpr void operator()(auto& list, auto& buffers) const {
    list[0].what.microbatch = 1;
    (void)buffers;
  }
};
static_assert(stretto::valid<support::spoilt<step, spoil>>);
