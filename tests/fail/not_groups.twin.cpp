// Both ranks sum three values.
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/gpipe.hpp"

struct memberless {
  static constexpr std::array<stretto::group_info, 1> infos{{{.first = 0, .count = 2, .elements = 3}}};
  static constexpr std::array<std::int32_t, 2> members{0, 1};
};
static_assert(
    stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4}, stretto::schedule::gpipe,
                                     stretto::assignment::unassigned, stretto::memory::release_early,
                                     stretto::overlap::separate, memberless>>);
