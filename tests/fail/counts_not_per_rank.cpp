// Three counts for two ranks.
// expected: stretto: misassigned: the layers do not fit the stages
// expected: stretto: counts_not_per_rank: each rank needs one layer count
// expected: <stretto::reason::counts_not_per_rank, -1, 3, 2>
#include "stretto/assignment/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/interleaved.hpp"

static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                  stretto::schedule::interleaved, stretto::assignment::round_robin<3, 3, 2>>>);
