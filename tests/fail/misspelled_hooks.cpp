// One letter from what is asked for: nobody would hear of any of them.
// expected: stretto: a memory policy's cost() is not asked for: costs() is
// expected: stretto: a memory policy's byte(int) is not asked for: bytes(int) is
// expected: stretto: a memory policy's layers(int) is not asked for: layer(int) is
// expected: stretto: a memory policy's layer_byte(int) is not asked for: layer_bytes(int) is
// expected: stretto: a memory policy's layers_bytes(int) is not asked for: layer_bytes(int) is
// expected: stretto: a memory policy's recomputes() is not asked for: recompute() is
// expected: stretto: a memory policy's offloads() is not asked for: offload() is
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct other_letters : stretto::memory::release_early {
  constexpr stretto::unit_costs cost() const { return {.forward = 2}; }
  constexpr stretto::stage_bytes byte(int) const { return {.output = 64}; }
  constexpr stretto::unit_costs layers(int) const { return {.forward = 2}; }
  constexpr stretto::layer_bytes layer_byte(int) const { return {.stash = 64}; }
  constexpr stretto::layer_bytes layers_bytes(int) const { return {.stash = 64}; }
  constexpr stretto::memory::recompute_window recomputes() const { return {}; }
  constexpr stretto::memory::offload_window offloads() const { return {}; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 3, .microbatches = 4},
                                               stretto::schedule::one_f_one_b,
                                               stretto::assignment::unassigned, other_letters>>);
