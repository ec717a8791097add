#pragma once

#include <string>

#include "step.hpp"

namespace stretto::tool {

//! A C++ header with the step's compute order as a table for stretto::schedule::frozen. Of a file
//! its name's letters and digits are the table's.
//! @param command what asked for it, as it stands in the header's first comment
//! @throws bad_input for a file with messages, or whose stages are neither looped nor in a wave
std::string print_header(const step& made, const std::string& command);

}  // namespace stretto::tool
