// Two micro-batches alive, and room for one.
// expected: stretto: over_limit: the rank needs more memory than its limit
// expected: stretto: over_limit: within_limit<rank, needed, limit> says how much
// expected-gnu: <stretto::fault::over_limit, stretto::reason::above_limit, 0, 1, stretto::job_kind::forward, 0, 1>
// expected-clang: <stretto::fault::over_limit, stretto::reason::above_limit, 0, 1, stretto::job_kind::forward, 0, 1>
// expected-gnu: stretto::within_limit<0, 12, 11>
// expected-clang: stretto::within_limit<0, 12, 11>
// expected-nvcc: Rank=0, Needed=12L, Limit=11L
// expected-nvcc: What=stretto::fault::over_limit, Why=stretto::reason::above_limit, Rank=0, Step=1, Kind=stretto::job_kind::forward, Stage=0, Microbatch=1
#include "stretto/check/bounded.hpp"
#include "stretto/plan/accepted.hpp"

using stretto::job_kind;

static constexpr stretto::fixed_job_table<1, 1> table{};  // a forward keeps 1, a backward frees it
static constexpr std::int64_t base[] = {10};
static constexpr std::int64_t limit[] = {11};
static constexpr auto lists = [] {
  stretto::fixed_job_lists<1, 4> made;
  auto out = made.sink();
  out.push(0, {0, 0, 0, job_kind::forward});
  out.push(0, {0, 1, 0, job_kind::forward});
  out.push(0, {0, 0, 0, job_kind::backward});
  out.push(0, {0, 1, 0, job_kind::backward});
  return made;
}();
static constexpr stretto::verdict checked = stretto::check::bounded({
    .rows = lists.rows(),
    .where = {.ranks = 1, .microbatches = 2},
    .microbatches = 2,
    .costs = {table.entries, 1, 1, 0, base, limit},
});
static_assert(stretto::accepted_verdict<checked>);
