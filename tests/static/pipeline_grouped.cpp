// Compiling is passing: all rules over the plans of grouped interleaving at 8 ranks, 64
// micro-batches and 2 chunks a rank, within the default limits of the compilers.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/grouped.hpp"

using step = stretto::pipeline<stretto::shape{.ranks = 8, .microbatches = 64, .chunks = 2},
                               stretto::schedule::grouped>;
static_assert(stretto::valid<step>);
static_assert(step::plans().size() == 8);
static_assert(step::plans()[7].instructions.back().act == stretto::action::end_step);

// Ranks beyond the micro-batches cost no more than their jobs do.
constexpr bool emits_in_few_steps() {
  constexpr stretto::shape sizes{.ranks = 256, .microbatches = 2};
  const stretto::job_table costs(sizes.ranks, 1);
  stretto::fixed_job_lists<sizes.ranks, 6> lists;
  stretto::job_sink out = lists.sink();
  return stretto::schedule::grouped{}.emit(sizes, costs.view(), out).ok() && lists.counts[0] == 6;
}
static_assert(emits_in_few_steps());
