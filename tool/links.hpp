#pragma once

#include <cstdint>

#include "stretto/model/replay_input.hpp"

namespace stretto::tool {

//! The messages that one rank has for another in a step. One after the other they take this long:
//! unless costs say that links carry one at a time, replays let them carry any number at once.
struct link_load {
  int from = -1;  //!< below 0: no rank has any
  int to = -1;
  std::int64_t messages = 0;
  std::int64_t time = 0;
};

//! Of the two ranks for which they take longest.
link_load busiest_link(const replay_input& input);

}  // namespace stretto::tool
