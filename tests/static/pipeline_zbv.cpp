// Compiling is passing: all rules over the plans of ZB-V at 8 ranks and 64 micro-batches, within
// the default limits of the compilers.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/zbv.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 8, .microbatches = 64, .chunks = 2},
                               stretto::schedule::zbv>;
static_assert(stretto::valid<step>);
static_assert(step::plans().size() == 8);
static_assert(step::plans()[7].instructions.back().act == stretto::action::end_step);
