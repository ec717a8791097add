#pragma once

#include <vector>

#include "stretto/schedule/any.hpp"

namespace support {

//! Every schedule of the library's list, compiled once for all tests.
const std::vector<stretto::schedule::any>& schedules();

}  // namespace support
