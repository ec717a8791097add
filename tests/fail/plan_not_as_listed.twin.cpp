// The plan's first forward is of the same micro-batch as its list's.
#include "stretto/plan/accepted.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/spoilt_plan.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3},
                               stretto::schedule::one_f_one_b>;
// Rank 0 begins with 0F0.
struct spoil {
  constexpr void operator()(auto& list, auto& buffers) const {
    list[0].what.microbatch = 0;
    (void)buffers;
  }
};
static_assert(stretto::valid<support::spoilt<step, spoil>>);
