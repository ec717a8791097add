#pragma once

#include <algorithm>
#include <chrono>

namespace stretto::executor {

//! How long to sleep before looking again at what tells nobody that it is over, so long after it
//! began: it is then seen about a thousandth of its time late. Where that is short it is better not
//! to sleep at all, because Linux sleeps for some 50 us more than it is asked to.
constexpr std::chrono::nanoseconds pause_after(std::chrono::nanoseconds passed) {
  constexpr std::chrono::nanoseconds least = std::chrono::microseconds(50);
  constexpr std::chrono::nanoseconds most = std::chrono::milliseconds(1);
  const std::chrono::nanoseconds part = passed / 1000;
  return part < least ? std::chrono::nanoseconds::zero() : std::min(part, most);
}

//! The same where many threads wait so long already, each for what may come after whole jobs:
//! meanwhile others need the cores.
constexpr std::chrono::nanoseconds nap_after(std::chrono::nanoseconds passed) {
  if (passed < std::chrono::milliseconds(10)) return std::chrono::microseconds(20);
  return std::max<std::chrono::nanoseconds>(std::chrono::microseconds(100), pause_after(passed));
}

}  // namespace stretto::executor
