// Layer 2 lies on stages 0 and 1.
// expected: stretto: misassigned: the layers do not fit the stages
// expected: stretto: layer_twice: this layer lies on two stages, or before its turn
// expected: <stretto::reason::layer_twice, 1, 2, 8>
#include "stretto/assignment/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/interleaved.hpp"

//! A policy of one's own.
struct own {
  static constexpr std::string_view name = "own";

  constexpr int layers() const { return 8; }
  constexpr stretto::verdict assign(const stretto::placement&,
                                    std::span<stretto::layer_range> stages) const {
    constexpr stretto::layer_range dealt[] = {{0, 3}, {2, 3}, {5, 2}, {7, 1}};
    for (std::size_t stage = 0; stage < 4; ++stage) stages[stage] = dealt[stage];
    return {};
  }
};

static_assert(
    stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                                     stretto::schedule::interleaved, own>>);
