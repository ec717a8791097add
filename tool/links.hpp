#pragma once

#include <cstdint>

#include "stretto/model/replay_input.hpp"

namespace stretto::tool {

//! The messages that one rank has for another in a step. Replays make each as late as costs say,
//! and let a link carry any number at once; one after the other they take this long.
struct link_load {
  int from = -1;  //!< below 0: no rank has any
  int to = -1;
  std::int64_t messages = 0;
  std::int64_t time = 0;
};

//! The most of any two ranks, by number.
link_load busiest_link(const replay_input& input);

}  // namespace stretto::tool
