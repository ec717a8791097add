// A schedule of one's own that emits a job of rank 0 twice: the lists have no place for the last one,
// but it is the doubled one that is told of.
// expected: stretto: incomplete: a job is missing, doubled, misplaced or out of range
// expected: <stretto::fault::incomplete, stretto::reason::duplicate, 0, 1, stretto::job_kind::forward, 0, 0>
// expected: first_time<0, 0>
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct generous : stretto::schedule::one_f_one_b {
  constexpr stretto::verdict emit(const stretto::shape& sizes, const stretto::job_table_view& costs,
                                  stretto::job_sink& out) const {
    out.push(0, {});
    return one_f_one_b::emit(sizes, costs, out);
  }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3}, generous>>);
