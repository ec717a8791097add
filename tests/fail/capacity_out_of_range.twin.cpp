// As much as is allowed.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct boundless : stretto::schedule::one_f_one_b {
  constexpr int capacity(const stretto::shape&) const { return 24; }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3}, boundless>>);
