#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stretto/executor/meetings.hpp"
#include "stretto/executor/runner.hpp"

namespace stretto::executor {

//! What one thread issues next.
struct turn {
  std::int32_t plan = 0;
  std::int32_t instruction = 0;
  bool begins = true;
  bool ends = true;
};

//! One order in which a single thread issues the instructions of all plans: that of each plan, and
//! what meets (a send and its receive, the members of a collective) stands together, all of it
//! begun before any of it ends. So every wait is for something issued already, whatever the depth
//! of a stream's queue, and a stream goes on behind a meeting once all of its sides are there.
//!
//! Ranks take turns by one instruction each, but for those that wait for who they meet. Peers in
//! other processes hold up nobody.
//! @throws plan_error naming what is stuck, when the plans have no such order: there are messages
//!         that cross, each sent before the other is received.
std::vector<turn> order_of_issue(std::span<const plan_view> plans, const meetings& met);

}  // namespace stretto::executor
