// Compiling is passing: all rules over the plans of kFkB at 8 ranks, 64
// micro-batches and 1 chunk a rank, within the default limits of the compilers.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/kfkb.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 8, .microbatches = 64, .chunks = 1},
                               stretto::schedule::kfkb>;
static_assert(stretto::valid<step>);
static_assert(step::plans().size() == 8);
static_assert(step::plans()[7].instructions.back().act == stretto::action::end_step);
