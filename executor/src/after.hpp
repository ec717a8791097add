#pragma once

#include <chrono>

#include "stretto/executor/monitor.hpp"

namespace stretto::executor {

//! So long from now. A length that means "never" does not overflow.
inline time_point after(std::chrono::nanoseconds length) {
  const time_point now = std::chrono::steady_clock::now();
  return length > time_point::max() - now ? time_point::max() : now + length;
}

}  // namespace stretto::executor
