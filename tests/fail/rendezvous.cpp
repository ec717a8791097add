// Micro-batch 0 is sent first, and 1 is what the other rank receives first.
// expected: stretto: rendezvous: a send and a receive do not meet
// expected-gnu: <stretto::fault::rendezvous, stretto::reason::message_mismatch, 0, 2, stretto::job_kind::send_forward, 0, 0>
// expected-clang: <stretto::fault::rendezvous, stretto::reason::message_mismatch, 0, 2, stretto::job_kind::send_forward, 0, 0>
// expected-nvcc: What=stretto::fault::rendezvous, Why=stretto::reason::message_mismatch, Rank=0, Step=2, Kind=stretto::job_kind::send_forward, Stage=0, Microbatch=0
// expected-gnu: stretto::other_job<stretto::job_kind::receive_forward, 1, 1, 0>
// expected-clang: stretto::other_job<stretto::job_kind::receive_forward, 1, 1, 0>
// expected-nvcc: Kind=stretto::job_kind::receive_forward, Stage=1, Microbatch=1, Slice=0
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
  out.push(1, {1, 1, 0, job_kind::receive_forward});
  out.push(1, {1, 0, 0, job_kind::receive_forward});
  return made;
}();
static constexpr stretto::verdict checked = stretto::check::rendezvous({
    .rows = lists.rows(),
    .where = {.ranks = 2, .microbatches = 2},
    .microbatches = 2,
    .costs = table.view(),
});
static_assert(stretto::accepted_verdict<checked>);
