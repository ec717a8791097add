// Later slices read what a slice keeps, so none goes to the host.
// expected: stretto: unsupported: the memory policy offloads, and micro-batches are in slices
// expected: <stretto::fault::unsupported, stretto::reason::slices_not_offloaded, -1, -1, stretto::job_kind::forward, 0, 0>
#include "stretto/memory/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/seq_1f1b.hpp"

struct away : stretto::memory::release_early {
  constexpr stretto::memory::offload_window offload() const { return {{1, 1}}; }
};
static_assert(
    stretto::valid<
        stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4, .slices = 2},
                          stretto::schedule::seq_1f1b, stretto::assignment::unassigned, away>>);
