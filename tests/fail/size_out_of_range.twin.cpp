// None of them has.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct shrinking : stretto::memory::release_early {
  constexpr stretto::stage_bytes bytes(int stage) const {
    return {.output = 64, .stash = 64 * (1 - stage)};
  }
};
static_assert(stretto::valid<stretto::pipeline<
                  stretto::shape{.ranks = 2, .microbatches = 2}, stretto::schedule::one_f_one_b,
                  stretto::assignment::unassigned, shrinking>>);
