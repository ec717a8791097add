// Seven times from rank to rank, with four stages: layer 1 would have to be on rank 0.
// expected: stretto: misassigned: the layers do not fit the stages
// expected: stretto: layer_misplaced: this layer must be on another rank
// expected: <stretto::reason::layer_misplaced, 1, 1, 0>
#include "stretto/assignment/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/interleaved.hpp"

static_assert(
    stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                                     stretto::schedule::interleaved,
                                     stretto::assignment::rank_list<0, 1, 0, 1, 0, 1, 0, 1>>>);
