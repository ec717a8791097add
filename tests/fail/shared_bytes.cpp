// Two micro-batches that live at once are saved in the same bytes.
// expected: stretto: race: two accesses to the same bytes are not ordered
// expected: <stretto::fault::race, stretto::reason::overwritten_while_read, 0, 2, stretto::job_kind::forward, 0, 1>
#include "stretto/plan/accepted.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/spoilt_plan.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3},
                               stretto::schedule::one_f_one_b>;
// Rank 0 issues 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0F2 0SEND_F2 and so on.
struct spoil {
  constexpr void operator()(auto& list, auto& buffers) const {
    buffers[2].offset = buffers[0].offset;
    (void)list;
  }
};
static_assert(stretto::valid<support::spoilt<step, spoil>>);
