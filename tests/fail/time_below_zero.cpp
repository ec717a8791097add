// A forward takes less than no time.
// expected: stretto: unsupported: the memory policy has a time below 0 or above 2^46
// expected: <stretto::fault::unsupported, stretto::reason::time_out_of_range, 0, -1, stretto::job_kind::forward, 0, 0>
// expected: given_number<0, -1, 70368744177664>
#include "stretto/memory/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct timed : stretto::memory::release_early {
  constexpr stretto::unit_costs costs() const { return {.forward = -1}; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                               stretto::schedule::one_f_one_b,
                                               stretto::assignment::unassigned, timed>>);
