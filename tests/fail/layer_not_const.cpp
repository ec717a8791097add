// Nobody could call them: every stage would have the same costs and bytes, without a word.
// expected: stretto: a memory policy's layer(int) must be const and return unit_costs
// expected: stretto: a memory policy's layer_bytes(int) must be const and return layer_bytes
#include "stretto/assignment/even.hpp"
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/gpipe.hpp"

struct by_layers : stretto::memory::release_early {
  constexpr stretto::unit_costs layer(int) { return {.forward = 2}; }
  constexpr stretto::layer_bytes layer_bytes(int) { return {.stash = 64}; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                               stretto::schedule::gpipe,
                                               stretto::assignment::even<2>, by_layers>>);
