// Of replicas.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/gpipe.hpp"

struct replicas : stretto::with_data_parallel<> {
  static constexpr int gathered = 1;
};

static_assert(
    stretto::valid<
        stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4}, stretto::schedule::gpipe,
                          stretto::assignment::unassigned, stretto::memory::release_early,
                          stretto::overlap::separate, replicas>>);
