// It says that it trains nothing.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/inference.hpp"

struct forwards : stretto::schedule::inference {
  static constexpr bool forward_only = true;
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 2}, forwards>>);
