// Groups that are members of a value, which no type names.
// expected: stretto: the sixth must be a groups policy
// expected: own_sums
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/gpipe.hpp"

struct own_sums {
  std::array<stretto::group_info, 1> infos{{{.first = 0, .count = 2, .elements = 3}}};
  std::array<std::int32_t, 2> members{0, 1};
};
static_assert(
    stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4}, stretto::schedule::gpipe,
                                     stretto::assignment::unassigned, stretto::memory::release_early,
                                     stretto::overlap::separate, own_sums>>);
