// Both ranks take the messages in the same order.
#include "stretto/check/rendezvous.hpp"
#include "stretto/plan/accepted.hpp"

using stretto::job_kind;

static constexpr stretto::fixed_job_table<2, 1> table{};
static constexpr auto lists = [] {
  stretto::fixed_job_lists<2, 4> made;
  auto out = made.sink();
  out.push(0, {0, 0, 0, job_kind::forward});
  out.push(0, {0, 1, 0, job_kind::forward});
  out.push(0, {0, 0, 0, job_kind::send_forward});
  out.push(0, {0, 1, 0, job_kind::send_forward});
  out.push(1, {1, 0, 0, job_kind::receive_forward});
  out.push(1, {1, 1, 0, job_kind::receive_forward});
  return made;
}();
static constexpr stretto::verdict checked = stretto::check::rendezvous({
    .rows = lists.rows(),
    .where = {.ranks = 2, .microbatches = 2},
    .microbatches = 2,
    .costs = table.view(),
});
static_assert(stretto::accepted_verdict<checked>);
