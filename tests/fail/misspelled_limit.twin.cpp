// The name that is asked for.
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct three : stretto::memory::release_early {
  constexpr std::int64_t limit() const { return 3; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 3, .microbatches = 4},
                                               stretto::schedule::one_f_one_b,
                                               stretto::assignment::unassigned, three>>);
