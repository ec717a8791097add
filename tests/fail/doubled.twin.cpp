// The same without that job.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct generous : stretto::schedule::one_f_one_b {
  constexpr stretto::verdict emit(const stretto::shape& sizes, const stretto::job_table_view& costs,
                                  stretto::job_sink& out) const {
    return one_f_one_b::emit(sizes, costs, out);
  }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3}, generous>>);
