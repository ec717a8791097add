// What forwards save is to go a job before they have run.
// expected: stretto: unsupported: the memory policy offloads by a period below 1, or a count, lag or prefetch below 0
// expected: <stretto::fault::unsupported, stretto::reason::bad_offload_window, -1, -1, stretto::job_kind::forward, 0, 0>
#include "stretto/memory/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct away : stretto::memory::release_early {
  constexpr stretto::memory::offload_window offload() const { return {{1, 1}, -1}; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                               stretto::schedule::one_f_one_b,
                                               stretto::assignment::unassigned, away>>);
