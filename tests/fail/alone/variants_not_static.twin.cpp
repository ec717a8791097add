// The same search with its number as it must be: both variants are 1F1B.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "stretto/schedule/variants.hpp"

struct two_orders : stretto::schedule::one_f_one_b {
  static constexpr int variants = 2;
  int variant = -1;
  stretto::schedule::objective_kind objective = stretto::schedule::objective_kind::flush;
  constexpr stretto::schedule::variant_score score(const stretto::shape& sizes,
                                                   const stretto::job_table_view& table, int,
                                                   stretto::job_sink* out = nullptr) const {
    if (out != nullptr) (void)emit(sizes, table, *out);
    return stretto::schedule::score_of(objective, 1, 1);
  }
};
static_assert(stretto::valid<
              stretto::pipeline<stretto::shape{.ranks = 3, .microbatches = 4}, two_orders>>);
