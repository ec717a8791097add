// Interleaved 1F1B has as many chunks a rank as one likes.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/all.hpp"

static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                  stretto::schedule::interleaved>>);
