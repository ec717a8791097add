#pragma once

#include "stretto/assignment/concept.hpp"

namespace stretto::assignment {

//! Says nothing about layers: for schedules looked at by themselves.
struct unassigned {
  static constexpr std::string_view name = "unassigned";

  constexpr int layers() const { return 0; }
  constexpr verdict assign(const placement&, std::span<layer_range>) const { return {}; }
};

}  // namespace stretto::assignment
