// All slices are kept.
#include "stretto/memory/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/seq_1f1b.hpp"

struct again : stretto::memory::release_early {
  constexpr stretto::memory::recompute_window recompute() const { return {}; }
};
static_assert(
    stretto::valid<
        stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4, .slices = 2},
                          stretto::schedule::seq_1f1b, stretto::assignment::unassigned, again>>);
