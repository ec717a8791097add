// Minus one of every micro-batch runs a second time.
// expected: stretto: unsupported: the memory policy recomputes by a period below 1
// expected: <stretto::fault::unsupported, stretto::reason::bad_recompute_window, -1, -1, stretto::job_kind::forward, 0, 0>
#include "stretto/memory/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct again : stretto::memory::release_early {
  constexpr stretto::memory::recompute_window recompute() const { return {1, -1}; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                               stretto::schedule::one_f_one_b,
                                               stretto::assignment::unassigned, again>>);
