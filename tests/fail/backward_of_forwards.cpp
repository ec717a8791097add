// A schedule that says that it has forwards alone, and has backwards, which no optimizer would follow.
// expected: stretto: incomplete
// expected: <stretto::fault::incomplete, stretto::reason::backward_of_forwards, 0, 2,
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct mistaken : stretto::schedule::one_f_one_b {
  static constexpr bool forward_only = true;
};

static_assert(
    stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4}, mistaken>>);
