// The first receive waits for the forward before the one that it should wait for.
// expected: stretto: untimely: this receive may be posted further ahead than the plan's lead
// expected: <stretto::fault::untimely, stretto::reason::posted_early, 0, 3, stretto::job_kind::receive_backward, 0, 0>
#include "stretto/lowering/streams/receive_lead.hpp"
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/accepted.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/spoilt_plan.hpp"

using step =
    stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3}, stretto::schedule::one_f_one_b,
                      stretto::assignment::unassigned, stretto::memory::release_early,
                      stretto::overlap::with_receive_lead<stretto::overlap::separate, 0>>;
// Rank 0 issues 0F0 0SEND_F0 0F1 0RECV_B0 0SEND_F1 0B0 0F2 0SEND_F2 0RECV_B1 0B1 and so on.
struct spoil {
  constexpr void operator()(auto& list, auto& buffers) const {
    (void)buffers;
    list[3].first_wait = list[1].first_wait;
  }
};
static_assert(stretto::valid<support::spoilt<step, spoil>>);
