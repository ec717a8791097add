// One chunk of each rank is recomputed, the other offloaded.
#include "stretto/memory/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/interleaved.hpp"

struct parted : stretto::memory::release_early {
  constexpr stretto::memory::recompute_window recompute() const { return {3, 1, 0, 0}; }
  constexpr stretto::memory::offload_window offload() const { return {{1, 1, 1, 1}}; }
};
static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                  stretto::schedule::interleaved, stretto::assignment::unassigned, parted>>);
