// The last message sent is released after the receive that proves it taken.
#include "stretto/plan/accepted.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/spoilt_plan.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3},
                               stretto::schedule::one_f_one_b>;
// Rank 0 ends with 0RECV_B2 0B2: the tenth and eleventh of its list, counted from 0.
struct spoil {
  constexpr void operator()(auto& list, auto& buffers) const {
    (void)list, (void)buffers;
  }
};
static_assert(stretto::valid<support::spoilt<step, spoil>>);
