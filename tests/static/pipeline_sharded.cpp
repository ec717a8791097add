// Compiling is passing: all rules over the plans of interleaved 1F1B at 8 ranks, 64 micro-batches
// and 2 chunks a rank, whose data-parallel replicas hold a part of each stage's weights, gather
// those of one stage at once and drop them again, within the default limits of the compilers.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/interleaved.hpp"

namespace {

constexpr stretto::shape sizes{.ranks = 8, .microbatches = 64, .chunks = 2};
using step = stretto::pipeline<sizes, stretto::schedule::interleaved,
                               stretto::assignment::unassigned, stretto::memory::release_early,
                               stretto::overlap::separate, stretto::with_sharded_weights<1>>;
static_assert(stretto::valid<step>);

//! Rank 0 has two stages, and takes turns in groups of eight micro-batches: forwards, then pairs of
//! a forward and a backward, then backwards.
constexpr int gathers(const stretto::plan_view& plan) {
  int count = 0;
  for (const stretto::instruction& at : plan.instructions)
    count += at.act == stretto::action::all_gather;
  return count;
}
static_assert(gathers(step::plans()[0]) > 16);

}  // namespace
