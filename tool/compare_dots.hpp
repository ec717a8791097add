#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "compare_table.hpp"

namespace stretto::tool {

//! Schedules of as many chunks that are alike in both.
struct compared_dot {
  std::int64_t peak;
  std::int64_t length;
  int chunks;
  std::vector<std::string> names{};
  bool unbeaten = false;  //!< none is both shorter and leaner
};

//! What a picture of a comparison shows.
struct compared_dots {
  std::vector<compared_dot> all;  //!< the shortest first
  std::vector<int> chunks;        //!< that there are, upwards
  //! No order within the greatest limit is shorter, where something is known.
  std::int64_t bound = std::numeric_limits<std::int64_t>::max();

  bool has_bound() const { return bound < std::numeric_limits<std::int64_t>::max(); }
};

//! @throws bad_input where nothing that trains is there to be drawn
compared_dots dots_of(const comparison& common, const std::vector<comparison_run>& runs);

}  // namespace stretto::tool
