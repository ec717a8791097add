// A schedule of one's own that emits a job more on rank 0 than it has asked room for.
// expected: stretto: capacity: the storage is too small
// expected: <stretto::fault::capacity, stretto::reason::above_capacity, 0, 6, stretto::job_kind::backward, 0, 2>
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct generous : stretto::schedule::one_f_one_b {
  constexpr stretto::verdict emit(const stretto::shape& sizes, const stretto::job_table_view& costs,
                                  stretto::job_sink& out) const {
    const stretto::verdict made = one_f_one_b::emit(sizes, costs, out);
    out.push(0, {0, 2, 0, stretto::job_kind::backward});
    return made;
  }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3}, generous>>);
