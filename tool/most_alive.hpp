#pragma once

#include <cstdint>
#include <vector>

#include "stretto/model/replay_input.hpp"

namespace stretto::tool {

//! Of every stage, of how many micro-batches it keeps what their forwards saved when its rank keeps
//! most, counted alike whatever the stage, and rounded up; of a stage in two directions, on the
//! rank where it is more.
//! @param order  complete lists, of training
//! @param whole  whether one counts as one to the end of its backward; else, from the end of the
//!               backward for the input on, as much of one as that leaves on the average of all
//!               stages
std::vector<std::int32_t> most_alive(const replay_input& order, bool whole);

}  // namespace stretto::tool
