// Three layers on four stages: no rank's fault.
// expected: stretto: misassigned: the layers do not fit the stages
// expected: stretto: empty_stage: the model has fewer layers than stages, which need one each
// expected: <stretto::reason::empty_stage, -1, 3, 4>
#include "stretto/assignment/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/interleaved.hpp"

static_assert(
    stretto::valid<
        stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                          stretto::schedule::interleaved, stretto::assignment::even<3>>>);
