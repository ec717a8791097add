// Layer 6 is to lie on the third of two ranks.
// expected: stretto: misassigned: the layers do not fit the stages
// expected: stretto: no_such_rank: there is no such rank
// expected: <stretto::reason::no_such_rank, 2, 6, 1>
#include "stretto/assignment/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/interleaved.hpp"

static_assert(
    stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                                     stretto::schedule::interleaved,
                                     stretto::assignment::rank_list<0, 0, 0, 1, 1, 0, 2, 1>>>);
