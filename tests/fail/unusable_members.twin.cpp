// As what asks can use them.
#include "stretto/assignment/even.hpp"
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct usable_memory : stretto::memory::release_early {
  static constexpr bool release_sends = false;
  constexpr stretto::unit_costs layer(int) const { return {.memory_forward = 100}; }
  constexpr stretto::memory::offload_window offload() const { return {}; }
  constexpr stretto::layer_bytes layer_bytes(int) const { return {.stash = 64}; }
  constexpr stretto::memory::recompute_window recompute() const { return {}; }
};
struct usable_lead : stretto::overlap::separate {
  constexpr int receive_lead() const { return 1; }
};
struct usable_assignment : stretto::assignment::even<4> {
  static constexpr bool leaves_empty = false;
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                               stretto::schedule::one_f_one_b, usable_assignment,
                                               usable_memory, usable_lead>>);
