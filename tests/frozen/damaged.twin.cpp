// The same table as the search wrote it.
#include "stretto/plan/pipeline.hpp"
#include "zb_auto_8x64.hpp"

static_assert(stretto::valid<stretto::pipeline<frozen_zb_auto_8x64::made_for,
                                               stretto::schedule::frozen<frozen_zb_auto_8x64>>>);
