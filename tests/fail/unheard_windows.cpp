// Nobody would call either: nothing would be recomputed, and nothing copied, without a word.
// expected: stretto: a memory policy's recompute is a function, recompute()
// expected: stretto: a memory policy's offload is a function, offload()
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/gpipe.hpp"

struct again : stretto::memory::release_early {
  stretto::memory::recompute_window recompute{1, 1};
  stretto::memory::offload_window offload{};
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                               stretto::schedule::gpipe,
                                               stretto::assignment::unassigned, again>>);
