// What is no window of micro-batches.
// expected: stretto: a memory policy's recompute() must return recompute_window
// expected: stretto: a memory policy's offload() must return offload_window
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct mistyped_windows : stretto::memory::release_early {
  constexpr int recompute() const { return 1; }
  constexpr stretto::memory::recompute_window offload() const { return {}; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                               stretto::schedule::one_f_one_b,
                                               stretto::assignment::unassigned, mistyped_windows>>);
