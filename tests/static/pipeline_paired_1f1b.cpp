// Compiling is passing: all rules over the plans of paired 1F1B at 8 ranks, 64
// micro-batches and 2 chunks a rank, within the default limits of the compilers.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/paired_1f1b.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 8, .microbatches = 64, .chunks = 2},
                               stretto::schedule::paired_1f1b>;
static_assert(stretto::valid<step>);
static_assert(step::plans().size() == 8);
static_assert(step::plans()[7].instructions.back().act == stretto::action::end_step);
