// Nobody asks for it: no rank would have a limit, and the step would be taken for one that keeps it.
// expected: stretto: a memory policy's limits() is not asked for: limit() is
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct three : stretto::memory::release_early {
  constexpr std::int64_t limits() const { return 3; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 3, .microbatches = 4},
                                               stretto::schedule::one_f_one_b,
                                               stretto::assignment::unassigned, three>>);
