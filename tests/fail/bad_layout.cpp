// A d is no layer.
// expected: stretto: misassigned: the layers do not fit the stages
// expected: stretto: bad_layout: at this character the text is no layout
// expected: <stretto::reason::bad_layout, -1, 7, 12>
#include "stretto/assignment/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/interleaved.hpp"

static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                  stretto::schedule::interleaved, stretto::assignment::layout<"Et*3|(d|)*2L">>>);
