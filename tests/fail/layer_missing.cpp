// Layer 5 lies nowhere.
// expected: stretto: misassigned: the layers do not fit the stages
// expected: stretto: layer_missing: this layer lies on no stage
// expected: <stretto::reason::layer_missing, 0, 5, 8>
#include "stretto/assignment/all.hpp"
#include "stretto/plan/pipeline.hpp"
#include "stretto/schedule/interleaved.hpp"

//! A policy of one's own.
struct own {
  static constexpr std::string_view name = "own";

  constexpr int layers() const { return 8; }
  constexpr stretto::verdict assign(const stretto::placement&,
                                    std::span<stretto::layer_range> stages) const {
    constexpr stretto::layer_range dealt[] = {{0, 3}, {3, 2}, {6, 1}, {7, 1}};
    for (std::size_t stage = 0; stage < 4; ++stage) stages[stage] = dealt[stage];
    return {};
  }
};

static_assert(
    stretto::valid<stretto::pipeline<stretto::shape{.ranks = 2, .microbatches = 4, .chunks = 2},
                                     stretto::schedule::interleaved, own>>);
