// The backward stands on the stream that it was given.
#include "stretto/plan/accepted.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support/spoilt_plan.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3},
                               stretto::schedule::one_f_one_b>;
struct spoil {
  constexpr void operator()(auto& list, auto& buffers) const {
    (void)list, (void)buffers;
  }
};
static_assert(stretto::valid<support::spoilt<step, spoil>>);
