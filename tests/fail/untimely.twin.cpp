// The first receive waits for the forward before its backward.
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
  constexpr void operator()(auto& list, auto& buffers) const { (void)list, (void)buffers; }
};
static_assert(stretto::valid<support::spoilt<step, spoil>>);
