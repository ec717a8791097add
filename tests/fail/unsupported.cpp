// Plain 1F1B has one chunk a rank.
// expected: stretto: unsupported: the policy does not serve this shape
// expected: <stretto::fault::unsupported, stretto::reason::chunks_not_one, -1, -1, stretto::job_kind::forward, 0, 0>
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/all.hpp"

static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                  stretto::schedule::one_f_one_b>>);
