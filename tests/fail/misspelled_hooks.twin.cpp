// The names that are asked for.
#include "stretto/assignment/even.hpp"
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct own_hooks : stretto::memory::release_early {
  constexpr stretto::unit_costs costs() const { return {.forward = 2}; }
  constexpr stretto::stage_bytes bytes(int) const { return {.output = 64}; }
  constexpr stretto::unit_costs layer(int) const { return {.forward = 2}; }
  constexpr stretto::memory::recompute_window recompute() const { return {}; }
  constexpr stretto::memory::offload_window offload() const { return {}; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 3, .microbatches = 4},
                                               stretto::schedule::one_f_one_b,
                                               stretto::assignment::even<3>, own_hooks>>);
