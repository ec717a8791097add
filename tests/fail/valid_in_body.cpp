// Asked in the body of a template that only host code calls, which nvcc reads for the device, too, but
// makes for the host alone.
// Behind some other faults the compiler behind nvcc no longer makes it: this stands last.
// expected: stretto: over_limit: the rank needs more memory than its limit
// expected: <stretto::fault::over_limit, stretto::reason::above_limit, 0, 2, stretto::job_kind::forward, 0, 2>
#include "stretto/memory/release_early.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/gpipe.hpp"

// Room for the activations of two micro-batches.
struct small : stretto::memory::release_early {
  constexpr std::int64_t limit() const { return 2; }
};
using step = stretto::pipeline<stretto::shape{.ranks = 3, .microbatches = 4}, stretto::schedule::gpipe,
                               stretto::assignment::unassigned, small>;

template <class Step>
int ranks_of() {
  if constexpr (stretto::valid<Step>) return Step::sizes.ranks;
  return 0;
}
int ranks() { return ranks_of<step>(); }
