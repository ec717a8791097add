// Of its seven streams, 0 to 6, the policy names the eighth for the optimizer of rank 1.
// expected: stretto: unsupported: the overlap policy has no such stream as it sends this job to
// expected: <stretto::fault::unsupported, stretto::reason::no_stream_for_job, 1, -1, stretto::job_kind::optimizer, 1, 0>
// expected: given_number<1, 7, 6>
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct misdirecting : stretto::overlap::separate {
  constexpr int stream_of(stretto::job_kind kind, int rank, int peer, int ranks) const {
    if (kind == stretto::job_kind::optimizer && rank == 1) return 7;
    return separate::stream_of(kind, rank, peer, ranks);
  }
};
static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 2}, stretto::schedule::one_f_one_b,
                  stretto::assignment::unassigned, stretto::memory::release_early, misdirecting>>);
