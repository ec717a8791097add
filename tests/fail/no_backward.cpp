// A step that trains, by a schedule of forwards alone.
// expected: stretto: incomplete: a job is missing, doubled, misplaced or out of range
// expected: <stretto::fault::incomplete, stretto::reason::missing, 0, -1, stretto::job_kind::backward, 0, 0>
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/inference.hpp"

struct forwards : stretto::schedule::inference {
  static constexpr bool forward_only = false;
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 2}, forwards>>);
