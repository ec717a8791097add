// Nobody could call it: every forward would be kept, without a word.
// expected: stretto: a memory policy's recompute() must be const
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/gpipe.hpp"

struct again : stretto::memory::release_early {
  constexpr stretto::memory::recompute_window recompute() { return {1, 1}; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                               stretto::schedule::gpipe,
                                               stretto::assignment::unassigned, again>>);
