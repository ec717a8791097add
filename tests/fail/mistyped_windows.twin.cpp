// As they are.
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct typed_windows : stretto::memory::release_early {
  constexpr stretto::memory::recompute_window recompute() const { return {}; }
  constexpr stretto::memory::offload_window offload() const { return {}; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                               stretto::schedule::one_f_one_b,
                                               stretto::assignment::unassigned, typed_windows>>);
