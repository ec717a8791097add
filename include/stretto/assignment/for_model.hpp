#pragma once

#include <span>
#include <string_view>

#include "stretto/assignment/concept.hpp"

namespace stretto::assignment {

//! Another assignment, which must deal as many layers as the model has.
template <int Layers, Policy Assignment>
struct for_model {
  static constexpr std::string_view name = Assignment::name;
  static constexpr bool leaves_empty = assignment::leaves_empty<Assignment>;

  constexpr int layers() const { return Layers; }
  constexpr verdict assign(const placement& where, std::span<layer_range> stages) const {
    if (const int given = Assignment{}.layers(); given != Layers)
      return misassigned(reason::layers_do_not_fit, -1, given, Layers);
    return Assignment{}.assign(where, stages);
  }
};

}  // namespace stretto::assignment
