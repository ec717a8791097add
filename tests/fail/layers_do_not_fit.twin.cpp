// As layers_do_not_fit.cpp, without the fault.
#include "stretto/assignment/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/interleaved.hpp"

static_assert(
    stretto::valid<stretto::pipeline<
        stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2}, stretto::schedule::interleaved,
        stretto::assignment::for_model<8, stretto::assignment::round_robin<5, 3>>>>);
