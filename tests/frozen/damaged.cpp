// One entry of the frozen table says another micro-batch than the search did.
// expected: stretto: incomplete: a job is missing, doubled, misplaced or out of range
// expected: <stretto::fault::incomplete, stretto::reason::duplicate, 3,
// expected: stretto::job_kind::backward_weight, 3, 18>
#include "damaged/zb_auto_8x64.hpp"
#include "stretto/plan/pipeline.hpp"

static_assert(stretto::valid<stretto::pipeline<frozen_zb_auto_8x64::made_for,
                                               stretto::schedule::frozen<frozen_zb_auto_8x64>>>);
