// Of no replicas, which would hold a part each.
// expected: stretto: unsupported: weights are gathered where there are data-parallel replicas, each with a part
// expected: <stretto::fault::unsupported, stretto::reason::nothing_to_gather, -1, -1,
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/gpipe.hpp"

struct alone : stretto::no_groups {
  static constexpr int gathered = 1;
};

static_assert(
    stretto::valid<
        stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4}, stretto::schedule::gpipe,
                          stretto::assignment::unassigned, stretto::memory::release_early,
                          stretto::overlap::separate, alone>>);
