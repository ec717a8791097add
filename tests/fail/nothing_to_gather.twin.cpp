// And those that train.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/gpipe.hpp"

static_assert(
    stretto::valid<
        stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4}, stretto::schedule::gpipe,
                          stretto::assignment::unassigned, stretto::memory::release_early,
                          stretto::overlap::separate, stretto::with_sharded_weights<1>>>);
