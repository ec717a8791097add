// As what asks can call them.
#include "stretto/assignment/even.hpp"
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/gpipe.hpp"

struct const_by_layers : stretto::memory::release_early {
  constexpr stretto::unit_costs layer(int) const { return {.forward = 2}; }
  constexpr stretto::layer_bytes layer_bytes(int) const { return {.stash = 64}; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                               stretto::schedule::gpipe,
                                               stretto::assignment::even<2>, const_by_layers>>);
