// The model goes on behind its head.
// expected: stretto: misassigned: the layers do not fit the stages
// expected: stretto: layout_order: E comes first, t before m, L last, and E and L once
// expected: <stretto::reason::layout_order, -1, 11, 11>
#include "stretto/assignment/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/interleaved.hpp"

static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                  stretto::schedule::interleaved, stretto::assignment::layout<"Et|tt|t|tLt">>>);
