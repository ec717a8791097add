// A backward stands on the stream of the receives: the forward behind it, which takes the place of
// what it reads, counted on their common stream.
// expected: stretto: race: two accesses to the same bytes are not ordered
// expected: <stretto::fault::race, stretto::reason::overwritten_while_read, 0, 7, stretto::job_kind::forward, 0, 2>
#include "stretto/plan/accepted.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/spoilt_plan.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3},
                               stretto::schedule::one_f_one_b>;
// Rank 0 issues 0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 and so on.
struct spoil {
  constexpr void operator()(auto& list, auto& buffers) const {
    (void)buffers;
    list[5].stream = list[4].stream;
  }
};
static_assert(stretto::valid<support::spoilt<step, spoil>>);
