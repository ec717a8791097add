// The same with room for it.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

struct modest : stretto::schedule::one_f_one_b {
  constexpr int capacity(const stretto::shape& sizes) const {
    return one_f_one_b::capacity(sizes);
  }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 3}, modest>>);
