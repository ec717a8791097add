// Both run on one.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct copying_apart : stretto::overlap::separate {
  constexpr int stream_of(stretto::job_kind kind, int rank, int peer, int ranks) const {
    if (kind == stretto::job_kind::reload && rank == 1) return offload;
    return separate::stream_of(kind, rank, peer, ranks);
  }
};
static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 2}, stretto::schedule::one_f_one_b,
                  stretto::assignment::unassigned, stretto::memory::release_early, copying_apart>>);
