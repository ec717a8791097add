// The second message to rank 1 leaves on another stream than the first.
// expected: stretto: rendezvous: messages between two ranks are on two streams
// expected: <stretto::fault::rendezvous, stretto::reason::channel_on_two_streams, 0, 3, stretto::job_kind::send_forward, 0, 1>
#include "stretto/plan/accepted.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/spoilt_plan.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3},
                               stretto::schedule::one_f_one_b>;
// Rank 0 issues 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0F2 0SEND_F2 and so on.
struct spoil {
  constexpr void operator()(auto& list, auto& buffers) const {
    (void)buffers;
    list[3].stream = list[0].stream;
  }
};
static_assert(stretto::valid<support::spoilt<step, spoil>>);
