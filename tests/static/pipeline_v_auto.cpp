// Compiling is passing: all rules over the plans of the adaptive V, the best of its variants, at 2
// ranks and 4 micro-batches, within the default limits of the compilers; larger steps prove an
// emitted table.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/v_auto.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                               stretto::schedule::v_auto>;
static_assert(stretto::valid<step>);
static_assert(step::plans().size() == 2);
static_assert(step::plans()[1].instructions.back().act == stretto::action::end_step);
