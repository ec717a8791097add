// Each backward gives back what its forward keeps, in two parts.
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/gpipe.hpp"

struct in_two : stretto::memory::release_early {
  constexpr stretto::unit_costs costs() const {
    return {.memory_forward = 10, .memory_backward_input = -4, .memory_backward_weight = -6};
  }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                               stretto::schedule::gpipe,
                                               stretto::assignment::unassigned, in_two>>);
