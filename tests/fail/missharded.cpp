// The weights are dropped behind the forward, and not gathered again before the backward.
// expected: stretto: missharded: weights are not gathered and dropped around their use, or
// expected-gnu: <stretto::fault::missharded, stretto::reason::not_gathered, 0, 3, stretto::job_kind::backward, 0, 0>
// expected-clang: <stretto::fault::missharded, stretto::reason::not_gathered, 0, 3, stretto::job_kind::backward, 0, 0>
// expected-nvcc: What=stretto::fault::missharded, Why=stretto::reason::not_gathered, Rank=0, Step=3, Kind=stretto::job_kind::backward, Stage=0, Microbatch=0
#include "stretto/check/sharded.hpp"
#include "stretto/plan/accepted.hpp"

using stretto::job_kind;

static constexpr auto lists = [] {
  stretto::fixed_job_lists<1, 8> made;
  auto out = made.sink();
  out.push(0, {0, 0, 0, job_kind::unshard});
  out.push(0, {0, 0, 0, job_kind::forward});
  out.push(0, {0, 0, 0, job_kind::reshard});
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
