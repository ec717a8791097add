#pragma once

#include <string>

#include "layers.hpp"
#include "stretto/model/placement.hpp"

namespace stretto::tool {

//! Draws who holds which layers: one lane per rank, its layers side by side as long as they take,
//! shaded by chunk, numbered where there is room; a line where the slowest rank ends and one at the
//! mean, which no slowest rank beats. Follows the reader's light or dark theme.
std::string to_svg(const dealt_layers& dealt, const placement& where, const std::string& title,
                   const std::string& subtitle);

}  // namespace stretto::tool
