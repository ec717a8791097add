// Rank 1 has one layer for its two chunks.
// expected: stretto: misassigned: the layers do not fit the stages
// expected: <stretto::fault::misassigned, stretto::reason::empty_stage, 1, -1, stretto::job_kind::forward, 0, 0>
// expected: stretto: empty_stage: this rank is given fewer layers than it needs
// expected: <stretto::reason::empty_stage, 1, 1, 2>
#include "stretto/assignment/round_robin.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/interleaved.hpp"

static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                  stretto::schedule::interleaved, stretto::assignment::round_robin<3, 1>>>);
