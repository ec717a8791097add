// Every micro-batch has its forward and its backward.
#include "stretto/check/complete.hpp"
#include "stretto/plan/accepted.hpp"

using stretto::job_kind;

static constexpr auto lists = [] {
  stretto::fixed_job_lists<1, 4> made;
  auto out = made.sink();
  out.push(0, {0, 0, 0, job_kind::forward});
  out.push(0, {0, 1, 0, job_kind::forward});
  out.push(0, {0, 0, 0, job_kind::backward});
  out.push(0, {0, 1, 0, job_kind::backward});
  return made;
}();
static constexpr stretto::verdict checked = stretto::check::complete({
    .rows = lists.rows(),
    .where = {.ranks = 1, .microbatches = 2},
    .microbatches = 2,
    .costs = {},
});
static_assert(stretto::accepted_verdict<checked>);
