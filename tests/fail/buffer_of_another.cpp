// The second forward writes what it saves into the first one's buffer.
// expected: stretto: incomplete: a job is missing, doubled, misplaced or out of range
// expected: <stretto::fault::incomplete, stretto::reason::buffer_of_another, 0, 2, stretto::job_kind::forward, 0, 1>
#include "stretto/plan/accepted.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/spoilt_plan.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3},
                               stretto::schedule::one_f_one_b>;
// Rank 0 issues 0F0 0SEND_F0 0F1 and so on; of each forward there are a stash and an output.
struct spoil {
  constexpr void operator()(auto& list, auto& buffers) const {
    (void)list;
    for (stretto::buffer& each : buffers)
      if (each.role == stretto::buffer_role::stash && each.microbatch == 1) each.microbatch = 0;
  }
};
static_assert(stretto::valid<support::spoilt<step, spoil>>);
