// The model has eight layers, and seven are dealt.
// expected: stretto: misassigned: the layers do not fit the stages
// expected: stretto: layers_do_not_fit: the layers do not sum to the model
// expected: <stretto::reason::layers_do_not_fit, -1, 7, 8>
#include "stretto/assignment/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/interleaved.hpp"

static_assert(
    stretto::valid<stretto::pipeline<
        stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2}, stretto::schedule::interleaved,
        stretto::assignment::for_model<8, stretto::assignment::round_robin<4, 3>>>>);
