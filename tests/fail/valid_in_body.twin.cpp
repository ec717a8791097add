// With room for four.
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/gpipe.hpp"

// Room for the activations of four micro-batches.
struct small : stretto::memory::release_early {
  constexpr std::int64_t limit() const { return 4; }
};
using step = stretto::pipeline<stretto::shape{.ranks = 3, .microbatches = 4}, stretto::schedule::gpipe,
                               stretto::assignment::unassigned, small>;

template <class Step>
int ranks_of() {
  if constexpr (stretto::valid<Step>) return Step::sizes.ranks;
  return 0;
}
int ranks() { return ranks_of<step>(); }
