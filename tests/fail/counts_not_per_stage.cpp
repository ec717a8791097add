// Three counts for four stages.
// expected: stretto: misassigned: the layers do not fit the stages
// expected: stretto: counts_not_per_stage: each stage needs one layer count
// expected: <stretto::reason::counts_not_per_stage, -1, 3, 4>
#include "stretto/assignment/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/interleaved.hpp"

static_assert(
    stretto::valid<
        stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                          stretto::schedule::interleaved, stretto::assignment::table<3, 3, 2>>>);
