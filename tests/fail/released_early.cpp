// The last message sent is released before the receive that proves it taken. Nobody uses its bytes
// again.
// expected: stretto: race: two accesses to the same bytes are not ordered
// expected: <stretto::fault::race, stretto::reason::released_early, 0, 10, stretto::job_kind::receive_backward, 0, 2>
#include "stretto/plan/accepted.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/spoilt_plan.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3},
                               stretto::schedule::one_f_one_b>;
// Rank 0 ends with 0RECV_B2 0B2: the tenth and eleventh of its list, counted from 0.
struct spoil {
  constexpr void operator()(auto& list, auto& buffers) const {
    ++list[10].release_count;
    --list[11].release_count;
    buffers[7].release = 10;
  }
};
static_assert(stretto::valid<support::spoilt<step, spoil>>);
