// And of two.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/dualpipe_v.hpp"

static_assert(
    stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                                     stretto::schedule::dualpipe_v, stretto::assignment::unassigned,
                                     stretto::memory::release_early, stretto::overlap::separate,
                                     stretto::with_sharded_weights<2>>>);
