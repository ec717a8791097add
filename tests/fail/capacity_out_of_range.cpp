// A schedule of one's own that asks for more room than any list can need.
// expected: stretto: unsupported: the schedule's capacity is below 0, or above eight jobs for each stage, micro-batch and slice of a rank
// expected: <stretto::fault::unsupported, stretto::reason::capacity_out_of_range, -1, -1, stretto::job_kind::forward, 0, 0>
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct boundless : stretto::schedule::one_f_one_b {
  constexpr int capacity(const stretto::shape&) const { return 25; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3}, boundless>>);
