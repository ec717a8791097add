// Stage 2, on rank 0, gets nothing.
// expected: stretto: misassigned: the layers do not fit the stages
// expected: stretto: empty_stage: this rank is given fewer layers than it needs
// expected: <stretto::reason::empty_stage, 0, 0, 1>
#include "stretto/assignment/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/interleaved.hpp"

static_assert(
    stretto::valid<
        stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                          stretto::schedule::interleaved, stretto::assignment::table<3, 2, 0, 1>>>);
