// The weights are gathered again before the backward.
#include "stretto/check/sharded.hpp"
#include "stretto/plan/accepted.hpp"

using stretto::job_kind;

static constexpr auto lists = [] {
  stretto::fixed_job_lists<1, 8> made;
  auto out = made.sink();
  out.push(0, {0, 0, 0, job_kind::unshard});
  out.push(0, {0, 0, 0, job_kind::forward});
  out.push(0, {0, 0, 0, job_kind::reshard});
  out.push(0, {0, 0, 0, job_kind::unshard});
  out.push(0, {0, 0, 0, job_kind::backward});
  out.push(0, {0, 0, 0, job_kind::reduce_grad});
  out.push(0, {0, 0, 0, job_kind::reshard});
  return made;
}();
static constexpr stretto::verdict checked = stretto::check::sharded({
    .rows = lists.rows(),
    .where = {.ranks = 1},
    .costs = {},
});
static_assert(stretto::accepted_verdict<checked>);
