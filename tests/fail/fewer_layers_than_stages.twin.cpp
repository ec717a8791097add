// As fewer_layers_than_stages.cpp, without the fault.
#include "stretto/assignment/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/interleaved.hpp"

static_assert(
    stretto::valid<
        stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                          stretto::schedule::interleaved, stretto::assignment::even<4>>>);
