// The second send does not wait for the forward that makes what it sends.
// expected: stretto: race: two accesses to the same bytes are not ordered
// expected: <stretto::fault::race, stretto::reason::read_before_write, 0, 3, stretto::job_kind::send_forward, 0, 1>
// expected: stretto::other_job<stretto::job_kind::forward, 0, 1, 0>
#include "stretto/plan/accepted.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/spoilt_plan.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3},
                               stretto::schedule::one_f_one_b>;
// Rank 0 issues 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0F2 0SEND_F2 and so on.
struct spoil {
  constexpr void operator()(auto& list, auto& buffers) const {
    (void)buffers;
    list[3].wait_count = 0;
  }
};
static_assert(stretto::valid<support::spoilt<step, spoil>>);
