// A search whose number of variants no constant has: it would be taken for a schedule of one order.
// expected-gnu: stretto: a schedule with variants is a search, which has variants that are static and constexpr
// expected-clang: stretto: a schedule with variants is a search, which has variants that are static and constexpr
// expected-nvcc: invalid use of non-static data member
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "stretto/schedule/variants.hpp"

struct two_orders : stretto::schedule::one_f_one_b {
  int variants = 2;
  int variant = -1;
  stretto::schedule::objective_kind objective = stretto::schedule::objective_kind::flush;
  constexpr stretto::schedule::variant_score score(const stretto::shape&,
                                                   const stretto::job_table_view&, int,
                                                   stretto::job_sink* = nullptr) const {
    return {};
  }
};
static_assert(stretto::valid<
              stretto::pipeline<stretto::shape{.ranks = 3, .microbatches = 4}, two_orders>>);
