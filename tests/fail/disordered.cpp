// The backward of micro-batch 1 stands before its forward.
// expected: stretto: disordered: a job stands before one of its rank that it needs
// expected-gnu: <stretto::fault::disordered, stretto::reason::needs_earlier, 0, 2, stretto::job_kind::backward, 0, 1>
// expected-clang: <stretto::fault::disordered, stretto::reason::needs_earlier, 0, 2, stretto::job_kind::backward, 0, 1>
// expected-nvcc: What=stretto::fault::disordered, Why=stretto::reason::needs_earlier, Rank=0, Step=2, Kind=stretto::job_kind::backward, Stage=0, Microbatch=1
// expected-gnu: stretto::other_job<stretto::job_kind::forward, 0, 1, 0>
// expected-clang: stretto::other_job<stretto::job_kind::forward, 0, 1, 0>
// expected-nvcc: Kind=stretto::job_kind::forward, Stage=0, Microbatch=1, Slice=0
#include "stretto/check/ordered.hpp"
#include "stretto/plan/accepted.hpp"

using stretto::job_kind;

static constexpr auto lists = [] {
  stretto::fixed_job_lists<1, 4> made;
  auto out = made.sink();
  out.push(0, {0, 0, 0, job_kind::forward});
  out.push(0, {0, 0, 0, job_kind::backward});
  out.push(0, {0, 1, 0, job_kind::backward});
  out.push(0, {0, 1, 0, job_kind::forward});
  return made;
}();
static constexpr stretto::verdict checked = stretto::check::ordered({
    .rows = lists.rows(),
    .where = {.ranks = 1, .microbatches = 2},
    .microbatches = 2,
    .costs = {},
});
static_assert(stretto::accepted_verdict<checked>);
