// What the policy says of layers would go unheard: a limit of 8 proven of one unit a forward.
// expected: stretto: the memory policy knows layers, and no assignment deals any: name one in the third place
#include "stretto/assignment/unassigned.hpp"
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/gpipe.hpp"

struct by_layers : stretto::memory::release_early {
  constexpr stretto::layer_bytes layer_bytes(int) const { return {.stash = 64}; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                               stretto::schedule::gpipe,
                                               stretto::assignment::unassigned, by_layers>>);
