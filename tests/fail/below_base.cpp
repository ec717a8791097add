// Each backward gives back ten times what its forward keeps: nothing would hold a limit of one.
// expected: stretto: unsupported: by the memory policy a rank's jobs give back more than they take
// expected: <stretto::fault::unsupported, stretto::reason::below_base, 0,
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/gpipe.hpp"

struct tenfold : stretto::memory::release_early {
  constexpr stretto::unit_costs costs() const { return {.memory_backward_weight = -10}; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                               stretto::schedule::gpipe,
                                               stretto::assignment::unassigned, tenfold>>);
