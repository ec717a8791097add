// A forward takes no time.
#include "stretto/memory/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct timed : stretto::memory::release_early {
  constexpr stretto::unit_costs costs() const { return {.forward = 0}; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                               stretto::schedule::one_f_one_b,
                                               stretto::assignment::unassigned, timed>>);
