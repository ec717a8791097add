// Each rank is in order by itself, but they take the micro-batches the other way round: the
// backward of micro-batch 0 on rank 0 waits for rank 1, which waits for the forward of 1.
// expected: stretto: deadlocked: the replay stops; this job waits for one that never runs
// expected-gnu: <stretto::fault::deadlocked, stretto::reason::waits_forever, 0, 1, stretto::job_kind::backward, 0, 0>
// expected-clang: <stretto::fault::deadlocked, stretto::reason::waits_forever, 0, 1, stretto::job_kind::backward, 0, 0>
// expected-nvcc: What=stretto::fault::deadlocked, Why=stretto::reason::waits_forever, Rank=0, Step=1, Kind=stretto::job_kind::backward, Stage=0, Microbatch=0
// expected-gnu: stretto::other_job<stretto::job_kind::backward, 1, 0, 0>
// expected-clang: stretto::other_job<stretto::job_kind::backward, 1, 0, 0>
// expected-nvcc: Kind=stretto::job_kind::backward, Stage=1, Microbatch=0, Slice=0
#include "stretto/check/live.hpp"
#include "stretto/plan/accepted.hpp"

using stretto::job_kind;

static constexpr stretto::fixed_job_table<2, 1> table{};
static constexpr auto lists = [] {
  stretto::fixed_job_lists<2, 4> made;
  auto out = made.sink();
  out.push(0, {0, 0, 0, job_kind::forward});
  out.push(0, {0, 0, 0, job_kind::backward});
  out.push(0, {0, 1, 0, job_kind::forward});
  out.push(0, {0, 1, 0, job_kind::backward});
  out.push(1, {1, 1, 0, job_kind::forward});
  out.push(1, {1, 1, 0, job_kind::backward});
  out.push(1, {1, 0, 0, job_kind::forward});
  out.push(1, {1, 0, 0, job_kind::backward});
  return made;
}();
static constexpr stretto::verdict checked = stretto::check::live({
    .rows = lists.rows(),
    .where = {.ranks = 2, .microbatches = 2},
    .microbatches = 2,
    .costs = table.view(),
});
static_assert(stretto::accepted_verdict<checked>);
