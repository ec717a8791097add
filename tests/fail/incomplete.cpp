// The backward of micro-batch 1 is forgotten.
// expected: stretto: incomplete: a job is missing, doubled, misplaced or out of range
// expected-gnu: <stretto::fault::incomplete, stretto::reason::missing, 0, -1, stretto::job_kind::backward, 0, 1>
// expected-clang: <stretto::fault::incomplete, stretto::reason::missing, 0, -1, stretto::job_kind::backward, 0, 1>
// expected-nvcc: What=stretto::fault::incomplete, Why=stretto::reason::missing, Rank=0, Step=-1, Kind=stretto::job_kind::backward, Stage=0, Microbatch=1
#include "stretto/check/complete.hpp"
#include "stretto/plan/accepted.hpp"

using stretto::job_kind;

static constexpr auto lists = [] {
  stretto::fixed_job_lists<1, 4> made;
  auto out = made.sink();
  out.push(0, {0, 0, 0, job_kind::forward});
  out.push(0, {0, 1, 0, job_kind::forward});
  out.push(0, {0, 0, 0, job_kind::backward});
  return made;
}();
static constexpr stretto::verdict checked = stretto::check::complete({
    .rows = lists.rows(),
    .where = {.ranks = 1, .microbatches = 2},
    .microbatches = 2,
    .costs = {},
});
static_assert(stretto::accepted_verdict<checked>);
