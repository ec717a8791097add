// Nobody could call the leads, and nobody would call the schedule's: the first would not be proven,
// and the second would be taken for training.
// expected: stretto: an overlap policy's receive_lead() must be const and return int
// expected: stretto: an overlap policy's receive_leads() is not asked for: receive_lead() is
// expected: stretto: a schedule's forward_only is a value and not a function
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/inference.hpp"

struct unheard_leads : stretto::overlap::separate {
  constexpr int receive_lead() { return 1; }
  constexpr int receive_leads() const { return 1; }
};
struct unheard_forwards : stretto::schedule::inference {
  constexpr bool forward_only() const { return true; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                               unheard_forwards, stretto::assignment::unassigned,
                                               stretto::memory::release_early, unheard_leads>>);
