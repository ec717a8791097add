#pragma once

#include <string>

#include "step.hpp"

namespace stretto::tool {

//! A C++ header with the step's compute order as a table for stretto::schedule::frozen.
//! @param command what asked for it, as it stands in the header's first comment
std::string print_header(const step& made, const shape& sizes, const std::string& command);

}  // namespace stretto::tool
