// Compiling is passing: all rules over the plans of interleaved 1F1B at 8 ranks, 64 micro-batches
// and 2 chunks a rank, every stage's gradients summed over data-parallel replicas right behind its
// last backward, within the default limits of the compilers.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/interleaved.hpp"

namespace {

constexpr stretto::shape sizes{.ranks = 8, .microbatches = 64, .chunks = 2};
using step = stretto::pipeline<sizes, stretto::schedule::interleaved,
                               stretto::assignment::unassigned, stretto::memory::release_early,
                               stretto::overlap::separate, stretto::with_data_parallel<>>;
static_assert(stretto::valid<step>);
static_assert(step::plans()[0].groups.size() == 16);

//! Of the rank's second chunk, whose backwards end first: jobs follow the sum.
constexpr int jobs_behind_first_sum(const stretto::plan_view& plan) {
  int jobs = 0;
  bool summed = false;
  for (const stretto::instruction& at : plan.instructions) {
    if (summed && stretto::is_compute(at.what.kind)) ++jobs;
    summed = summed || at.act == stretto::action::all_reduce;
  }
  return jobs;
}
static_assert(jobs_behind_first_sum(step::plans()[0]) == 8);

}  // namespace
