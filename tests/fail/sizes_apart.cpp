// What rank 0 sends first is 64 bytes longer than what rank 1 receives.
// expected: stretto: rendezvous: a send and a receive do not meet
// expected: <stretto::fault::rendezvous, stretto::reason::sizes_apart, 0, 1, stretto::job_kind::send_forward, 0, 0>
#include "stretto/plan/accepted.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/spoilt_plan.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3},
                               stretto::schedule::one_f_one_b>;
// The first of rank 0's outputs.
struct spoil {
  constexpr void operator()(auto& list, auto& buffers) const {
    (void)list;
    for (stretto::buffer& each : buffers)
      if (each.role == stretto::buffer_role::output) return void(each.bytes += 64);
  }
};
static_assert(stretto::valid<support::spoilt<step, spoil>>);
