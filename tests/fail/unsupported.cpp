// Plain 1F1B has one chunk a rank.
// expected: stretto: unsupported: the policy does not serve this shape
// expected-gnu: <stretto::fault::unsupported, stretto::reason::chunks_not_one, -1, -1, stretto::job_kind::forward, 0, 0>
// expected-clang: <stretto::fault::unsupported, stretto::reason::chunks_not_one, -1, -1, stretto::job_kind::forward, 0, 0>
// expected-nvcc: What=stretto::fault::unsupported, Why=stretto::reason::chunks_not_one, Rank=-1, Step=-1, Kind=stretto::job_kind::forward, Stage=0, Microbatch=0
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/all.hpp"

static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                  stretto::schedule::one_f_one_b>>);
