// Fill and drain keeps all four micro-batches, and there is room for three.
// expected: stretto: over_limit: the rank needs more memory than its limit
// expected: <stretto::fault::over_limit, stretto::reason::above_limit, 0, 3, stretto::job_kind::forward, 0, 3>
// expected: stretto: over_limit: within_limit<rank, needed, limit> says how much
// expected: stretto::within_limit<0, 4, 3>
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/gpipe.hpp"

// Room for the activations of three micro-batches.
struct small : stretto::memory::release_early {
  constexpr std::int64_t limit() const { return 3; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 3, .microbatches = 4},
                                               stretto::schedule::gpipe,
                                               stretto::assignment::unassigned, small>>);
