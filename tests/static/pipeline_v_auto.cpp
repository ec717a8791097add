// Compiling is passing: all rules over the plans of the adaptive V, the best of its variants, at 8
// ranks and 64 micro-batches, within the default limits of the compilers. With these costs one of
// the first variants cannot be beaten; a search that must try them all had better be an emitted
// table.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/v_auto.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 8, .microbatches = 64, .chunks = 2},
                               stretto::schedule::v_auto>;
static_assert(stretto::valid<step>);
static_assert(step::plans().size() == 8);
static_assert(step::plans()[7].instructions.back().act == stretto::action::end_step);
