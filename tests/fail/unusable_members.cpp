// Of the right names, but whoever asks for them cannot use them: nobody would hear of them, and a
// limit be proven of something else.
// expected: stretto: a memory policy's release_sends is a value and not a function
// expected: stretto: a memory policy's layer(int) must be public, and take a layer's number
// expected: stretto: a memory policy's layer_bytes(int) must be public, and take a layer's number
// expected: stretto: a memory policy's recompute() must be public, and take nothing
// expected: stretto: a memory policy's offload() must be public, and take nothing
// expected: stretto: an overlap policy's receive_lead() must be public, and take nothing
// expected: stretto: an assignment's leaves_empty is a value and not a function
#include "stretto/assignment/even.hpp"
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct unusable_memory : stretto::memory::release_early {
  static constexpr bool release_sends() { return false; }
  constexpr stretto::unit_costs layer() const { return {.memory_forward = 100}; }
  constexpr stretto::memory::offload_window offload(int) const { return {}; }

 private:
  constexpr stretto::layer_bytes layer_bytes(int) const { return {.stash = 64}; }
  constexpr stretto::memory::recompute_window recompute() const { return {}; }
};
struct unusable_lead : stretto::overlap::separate {
  constexpr int receive_lead(int) const { return 1; }
};
struct unusable_assignment : stretto::assignment::even<4> {
  static constexpr bool leaves_empty() { return false; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                               stretto::schedule::one_f_one_b, unusable_assignment,
                                               unusable_memory, unusable_lead>>);
