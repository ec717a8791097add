// The second forward waits for the first, which stands before it on the same stream.
// expected: stretto: idle_event: an event orders nothing that is not ordered without it
// expected: <stretto::fault::idle_event, stretto::reason::event_removable, 0, 2, stretto::job_kind::forward, 0, 1>
#include "stretto/plan/accepted.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/spoilt_plan.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3},
                               stretto::schedule::one_f_one_b>;
// Rank 0 issues 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0F2 0SEND_F2 and so on.
struct spoil {
  constexpr void operator()(auto& list, auto& buffers) const {
    (void)buffers;
    list[2].wait_count = 1;
    list[2].first_wait = list[1].first_wait;
  }
};
static_assert(stretto::valid<support::spoilt<step, spoil>>);
