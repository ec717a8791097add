// Replicas would sum all of the gradients of stage 1 but their last two bytes.
// expected: stretto: unsupported: replicas sum gradients, and the memory policy's are no whole floats of 4 bytes
// expected: <stretto::fault::unsupported, stretto::reason::gradients_not_floats, -1, -1, stretto::job_kind::forward, 1, 0>
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/chimera.hpp"

struct halves : stretto::memory::release_early {
  constexpr stretto::stage_bytes bytes(int stage) const {
    return {.output = 64, .gradients = 64 + 2 * stage};
  }
};
static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 4},
                  stretto::schedule::chimera, stretto::assignment::unassigned, halves>>);
