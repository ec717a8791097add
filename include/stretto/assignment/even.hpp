#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "stretto/assignment/concept.hpp"

namespace stretto::assignment {

//! Deals `layers` to the stages as evenly as can be: the first (layers mod stages) stages hold one
//! more. For any placement.
constexpr verdict deal_evenly(int layers, const placement& where, std::span<layer_range> stages) {
  const int count = where.stages();
  if (count < 1) return misassigned(reason::layers_do_not_fit, -1, layers, 0);
  if (stages.size() < static_cast<std::size_t>(count))
    return refuse(fault::capacity, reason::buffer_full);
  if (layers < count) return misassigned(reason::empty_stage, -1, layers, count);
  std::int32_t first = 0;
  for (int stage = 0; stage < count; ++stage) {
    const std::int32_t held = layers / count + (stage < layers % count ? 1 : 0);
    stages[static_cast<std::size_t>(stage)] = {first, held};
    first += held;
  }
  return {};
}

//! The same number of layers for every stage, the remainder to the first.
template <int Layers>
struct even {
  static constexpr std::string_view name = "even";

  constexpr int layers() const { return Layers; }
  constexpr verdict assign(const placement& where, std::span<layer_range> stages) const {
    return deal_evenly(Layers, where, stages);
  }
};

}  // namespace stretto::assignment
