// The same, with one that it has.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/one_f_one_b.hpp"

template <int Ahead>
struct ahead_by : stretto::schedule::one_f_one_b {
  constexpr stretto::verdict supports(const stretto::shape& sizes) const {
    if (Ahead < 0 || Ahead > sizes.microbatches)
      return stretto::refuse(stretto::fault::unsupported, stretto::reason::option_out_of_range);
    return one_f_one_b::supports(sizes);
  }
};
static_assert(stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4},
                                               ahead_by<4>>>);
