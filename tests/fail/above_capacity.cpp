// A schedule of one's own that asks for room for a job less than it emits on every rank.
// expected: stretto: capacity: the schedule emits more jobs on this rank than its capacity
// expected: <stretto::fault::capacity, stretto::reason::above_capacity, 0, 5, stretto::job_kind::backward, 0, 2>
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct modest : stretto::schedule::one_f_one_b {
  constexpr int capacity(const stretto::shape& sizes) const {
    return one_f_one_b::capacity(sizes) - 1;
  }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3}, modest>>);
