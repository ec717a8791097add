// Compiling is passing: all rules over the plans of one forward, one backward at 8 ranks, 64
// micro-batches and 1 chunk a rank whose forwards keep what they save on the host, within the
// default limits of the compilers.
#include "stretto/memory/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

namespace {

struct offloading : stretto::memory::release_early {
  constexpr stretto::memory::offload_window offload() const { return stretto::memory::offload_all; }
};

using step = stretto::pipeline<stretto::shape{.ranks = 8, .microbatches = 64, .chunks = 1},
                               stretto::schedule::one_f_one_b, stretto::assignment::unassigned,
                               offloading>;
static_assert(stretto::valid<step>);
static_assert(step::plans().size() == 8);
// On the first rank three are here at once at most, of the eight in flight.
static_assert(step::plans()[0].host_bytes == 7 * 64);
static_assert(step::plans()[0].streams.back().priority == 0);

}  // namespace
