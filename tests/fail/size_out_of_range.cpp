// The stash of stage 1 has a negative number of bytes.
// expected: stretto: unsupported: the memory policy has bytes below 0 or above 2^40
// expected: <stretto::fault::unsupported, stretto::reason::stash_out_of_range, -1, -1, stretto::job_kind::forward, 1, 0>
// expected: given_number<-1, -64, 1099511627776>
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct shrinking : stretto::memory::release_early {
  constexpr stretto::stage_bytes bytes(int stage) const {
    return {.output = 64, .stash = 64 * (0 - stage)};
  }
};
static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 2}, stretto::schedule::one_f_one_b,
                  stretto::assignment::unassigned, shrinking>>);
