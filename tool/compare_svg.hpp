#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compare_table.hpp"

namespace stretto::tool {

//! Draws what memory buys: a dot for each schedule that trains, right by its fullest rank's peak,
//! up by what is to be short, coloured by chunks; a line through those that no other beats in both,
//! a dashed one at the least bound, one at each limit. Named where there is room, and by tooltips.
//! Follows the reader's light or dark theme.
//! @param limits  in which order `runs` are; empty: there is but one
//! @throws bad_input where none is there to be drawn
std::string to_svg(const comparison& common, const std::vector<std::int64_t>& limits,
                   const std::vector<comparison_run>& runs);

}  // namespace stretto::tool
