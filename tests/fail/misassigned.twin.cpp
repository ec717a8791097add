// Each rank has a layer for each of its chunks.
#include "stretto/assignment/round_robin.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/interleaved.hpp"

static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                  stretto::schedule::interleaved, stretto::assignment::round_robin<3, 2>>>);
