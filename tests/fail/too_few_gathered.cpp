// A rank that pairs jobs of two stages has the weights of one at once.
// expected: stretto: unsupported: replicas gather the weights of fewer stages at once than a rank needs
// expected: <stretto::fault::unsupported, stretto::reason::too_few_gathered, -1, -1,
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/dualpipe_v.hpp"

static_assert(
    stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                                     stretto::schedule::dualpipe_v, stretto::assignment::unassigned,
                                     stretto::memory::release_early, stretto::overlap::separate,
                                     stretto::with_sharded_weights<1>>>);
