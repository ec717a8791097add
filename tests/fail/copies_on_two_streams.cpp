// What comes back from the host is to run on another stream than what goes there.
// expected: stretto: unsupported: the overlap policy sends copies to the host and back to two streams
// expected: <stretto::fault::unsupported, stretto::reason::copies_on_two_streams, 1, -1, stretto::job_kind::reload, 1, 0>
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct copying_apart : stretto::overlap::separate {
  constexpr int stream_of(stretto::job_kind kind, int rank, int peer, int ranks) const {
    if (kind == stretto::job_kind::reload && rank == 1) return data_parallel;
    return separate::stream_of(kind, rank, peer, ranks);
  }
};
static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 2}, stretto::schedule::one_f_one_b,
                  stretto::assignment::unassigned, stretto::memory::release_early, copying_apart>>);
