// One entry of the frozen table says another micro-batch than the search did.
// expected: stretto: incomplete: a job is missing, doubled, misplaced or out of range
// expected-gnu: <stretto::fault::incomplete, stretto::reason::duplicate, 3,
// expected-gnu: stretto::job_kind::backward_weight, 3, 18>
// expected-clang: <stretto::fault::incomplete, stretto::reason::duplicate, 3,
// expected-clang: stretto::job_kind::backward_weight, 3, 18>
// expected-nvcc: What=stretto::fault::incomplete, Why=stretto::reason::duplicate, Rank=3,
// expected-nvcc: Kind=stretto::job_kind::backward_weight, Stage=3, Microbatch=18
#include "damaged/zb_auto_8x64.hpp"
#include "stretto/plan/pipeline.hpp"

static_assert(stretto::valid<stretto::pipeline<frozen_zb_auto_8x64::made_for,
                                               stretto::schedule::frozen<frozen_zb_auto_8x64>>>);
