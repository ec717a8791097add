// Layers balanced by cost, under each compiler's own limits, and what they cost in the proof.
#include <array>

#include "stretto/stretto.hpp"

namespace {

//! An embedding, 32 unequal blocks, a head.
struct model {
  static constexpr int layers = 34;

  constexpr stretto::unit_costs layer(int at) const {
    if (at == 0)
      return {.forward = 1, .backward_input = 0, .backward_weight = 1, .memory_weights = 50};
    if (at == 33)
      return {.forward = 17, .backward_input = 17, .backward_weight = 17, .memory_weights = 50};
    return {
        .forward = 10 + at % 3, .backward_input = 10, .backward_weight = 9, .memory_weights = 12};
  }
};

//! The same with a limit, activations counted as 1F1B keeps them.
struct tight : model {
  static constexpr std::int64_t limit = 90;

  constexpr int alive(const stretto::placement& where, int stage) const {
    return where.stages() - stage;
  }
};

template <class Model, stretto::placement_kind Kind, int Ranks, int Chunks>
constexpr std::array<stretto::layer_range, Ranks * Chunks> dealt = [] {
  std::array<stretto::layer_range, Ranks * Chunks> stages{};
  if (!stretto::assignment::balanced<Model>{}.assign({Kind, Ranks, Chunks}, stages).ok())
    stages = {};
  return stages;
}();

using enum stretto::placement_kind;
static_assert(dealt<model, looped, 8, 1>[7].count == 4);  // 3 blocks and the head
static_assert(dealt<tight, looped, 8, 1>[0].count == 2);
static_assert(dealt<model, looped, 8, 2>[15].count > 0);
static_assert(dealt<model, wave, 8, 2>[15].count > 0);

//! Every rank is the slowest, so layers are tried everywhere. Were all ranks judged anew for each,
//! this would be beyond clang's default limit.
struct alike {
  static constexpr int layers = 96;

  constexpr stretto::unit_costs layer(int) const { return {}; }
};
static_assert(dealt<alike, looped, 24, 2>[47].count == 2);

struct by_layers : stretto::memory::release_early {
  constexpr stretto::unit_costs layer(int at) const { return model{}.layer(at); }
};
using step = stretto::pipeline<stretto::shape{.ranks = 4, .microbatches = 8, .chunks = 2},
                               stretto::schedule::interleaved, stretto::assignment::balanced<model>,
                               by_layers>;
static_assert(stretto::valid<step>);
static_assert(
    step::costs().at(3, 1, stretto::job_kind::forward).time ==
    stretto::sum_of_layers(step::layers[7], stretto::memory::layers_of<by_layers>{}).forward);
static_assert(step::costs().base_of(0) ==
              12 * (step::layers[0].count + step::layers[4].count) + 50 - 12);

}  // namespace
