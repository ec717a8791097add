#pragma once

#include <string>

#include "sweep_grid.hpp"

namespace stretto::tool {

//! Draws a line for each schedule that trains, or one for several that are alike on all shapes of a
//! panel, with their names at its end; panels one below the other, to the same scale. Follows the
//! reader's light or dark theme.
//! @throws bad_input where none is there to be drawn
std::string to_svg(const sweep_grid& grid);

}  // namespace stretto::tool
