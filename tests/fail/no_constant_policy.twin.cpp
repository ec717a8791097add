// Where constants are.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct made_at_compile_time : stretto::schedule::one_f_one_b {
  constexpr made_at_compile_time() {}
};
struct made_of_nothing : stretto::schedule::one_f_one_b {
  constexpr explicit made_of_nothing(int = 0) {}
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                               made_at_compile_time>>);
static_assert(stretto::valid<
              stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4}, made_of_nothing>>);
