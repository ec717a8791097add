// A pipeline makes one of each policy for itself, where constants are.
// expected: stretto: policies must have a default constructor, and it must be constexpr
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct made_at_run_time : stretto::schedule::one_f_one_b {
  made_at_run_time() {}
};
struct made_of_something : stretto::schedule::one_f_one_b {
  constexpr explicit made_of_something(int) {}
};
static_assert(stretto::valid<
              stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4}, made_at_run_time>>);
static_assert(stretto::valid<
              stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4}, made_of_something>>);
