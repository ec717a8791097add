// They are whole floats where they are summed, and what they are where nobody sums them.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/chimera.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

template <int Each>
struct gradients : stretto::memory::release_early {
  constexpr stretto::stage_bytes bytes(int stage) const {
    return {.output = 64, .gradients = 64 + Each * stage};
  }
};
static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 4},
                  stretto::schedule::chimera, stretto::assignment::unassigned, gradients<4>>>);
static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 4}, stretto::schedule::one_f_one_b,
                  stretto::assignment::unassigned, gradients<2>>>);
