// Forwards alone have no gradients to sum.
// expected: stretto: unsupported: weights are gathered where gradients are summed, and this step has none
// expected: <stretto::fault::unsupported, stretto::reason::nothing_to_gather, -1, -1,
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/inference.hpp"

static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 4}, stretto::schedule::inference,
                  stretto::assignment::unassigned, stretto::memory::release_early,
                  stretto::overlap::separate, stretto::with_sharded_weights<1>>>);
