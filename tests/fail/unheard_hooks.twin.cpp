// As what asks can hear of them.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/inference.hpp"

struct heard_lead : stretto::overlap::separate {
  constexpr int receive_lead() const { return 1; }
};
struct heard_forwards : stretto::schedule::inference {
  static constexpr bool forward_only = true;
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                               heard_forwards, stretto::assignment::unassigned,
                                               stretto::memory::release_early, heard_lead>>);
