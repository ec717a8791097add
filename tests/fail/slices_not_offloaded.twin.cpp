// All slices stay.
#include "stretto/memory/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/seq_1f1b.hpp"

struct away : stretto::memory::release_early {
  constexpr stretto::memory::offload_window offload() const { return {}; }
};
static_assert(
    stretto::valid<
        stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4, .slices = 2},
                          stretto::schedule::seq_1f1b, stretto::assignment::unassigned, away>>);
