// The forward of slice 2 stands before that of slice 1, to which it attends.
// expected: stretto: of_slice<rank, step, slice> says which slice of the job it is
// expected-gnu: stretto::of_slice<0, 1, 2>
// expected-clang: stretto::of_slice<0, 1, 2>
// expected-nvcc: Rank=0, Step=1, Slice=2
#include "stretto/check/ordered.hpp"
#include "stretto/plan/accepted.hpp"

using stretto::job_kind;

static constexpr auto lists = [] {
  stretto::fixed_job_lists<1, 6> made;
  auto out = made.sink();
  out.push(0, {0, 0, 0, job_kind::forward});
  out.push(0, {0, 0, 2, job_kind::forward});
  out.push(0, {0, 0, 1, job_kind::forward});
  out.push(0, {0, 0, 2, job_kind::backward});
  out.push(0, {0, 0, 1, job_kind::backward});
  out.push(0, {0, 0, 0, job_kind::backward});
  return made;
}();
static constexpr stretto::verdict checked = stretto::check::ordered({
    .rows = lists.rows(),
    .where = {.ranks = 1, .microbatches = 1},
    .microbatches = 1,
    .slices = 3,
    .costs = {},
});
static_assert(stretto::accepted_verdict<checked>);
