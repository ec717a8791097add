#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compare_table.hpp"

namespace stretto::tool {

//! The names of the columns, and an end of line.
std::string csv_titles();

//! The rows of one run, a line each: what is not known of a row is empty. Numbers have no units, a
//! bubble is a part of 1, `peak` and `bubble` are those of the worst rank.
//! @param limit  within which they are; empty: none
std::string csv_lines(const comparison& common, std::optional<std::int64_t> limit,
                      const comparison_run& made);

//! All runs, with titles.
//! @param limits  in which order `runs` are; empty: there is but one
std::string to_csv(const comparison& common, const std::vector<std::int64_t>& limits,
                   const std::vector<comparison_run>& runs);

}  // namespace stretto::tool
