// One that does not say so.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct mistaken : stretto::schedule::one_f_one_b {
  static constexpr bool forward_only = false;
};

static_assert(
    stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4}, mistaken>>);
