// The backward for the weights is to run on another stream than the stages compute on.
// expected: stretto: unsupported: the overlap policy puts this job where no stage computes
// expected: <stretto::fault::unsupported, stretto::reason::not_with_computation, 1, -1, stretto::job_kind::backward_weight, 1, 0>
// expected: given_number<1, 5, 0>
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct computing_elsewhere : stretto::overlap::separate {
  constexpr int stream_of(stretto::job_kind kind, int rank, int peer, int ranks) const {
    if (kind == stretto::job_kind::backward_weight && rank == 1) return data_parallel;
    return separate::stream_of(kind, rank, peer, ranks);
  }
};
static_assert(
    stretto::valid<stretto::pipeline<
        stretto::shape{.ranks = 2, .microbatches = 2}, stretto::schedule::one_f_one_b,
        stretto::assignment::unassigned, stretto::memory::release_early, computing_elsewhere>>);
