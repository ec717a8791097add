// They are called, whether members or what members hold.
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/gpipe.hpp"

struct every_window {
  constexpr stretto::memory::recompute_window operator()() const { return {1, 1}; }
};
struct again : stretto::memory::release_early {
  every_window recompute{};
  static constexpr stretto::memory::offload_window offload() { return {}; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                               stretto::schedule::gpipe,
                                               stretto::assignment::unassigned, again>>);
