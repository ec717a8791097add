// What is saved anew by a recompute is not copied to the host, too.
// expected: stretto: unsupported: the memory policy offloads what it recomputes, too
// expected: <stretto::fault::unsupported, stretto::reason::offload_recomputed, -1, -1, stretto::job_kind::forward, 0, 0>
#include "stretto/memory/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/interleaved.hpp"

struct twice : stretto::memory::release_early {
  constexpr stretto::memory::recompute_window recompute() const { return {3, 1}; }
  constexpr stretto::memory::offload_window offload() const { return {{1, 1}}; }
};
static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                  stretto::schedule::interleaved, stretto::assignment::unassigned, twice>>);
