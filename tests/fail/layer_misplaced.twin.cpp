// As layer_misplaced.cpp, without the fault.
#include "stretto/assignment/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/interleaved.hpp"

static_assert(
    stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                                     stretto::schedule::interleaved,
                                     stretto::assignment::rank_list<0, 1, 1, 1, 0, 0, 0, 1>>>);
