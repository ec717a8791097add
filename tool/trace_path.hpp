#pragma once

#include <vector>

#include "measured_trace.hpp"
#include "stretto/model/replay_input.hpp"
#include "stretto/plan/critical_path.hpp"

namespace stretto::tool {

//! The critical path of a measured step, in nanoseconds from its first job's start on.
//! @param measured   measured_trace::step
//! @param scheduled  whose orders it has (broken_order); its hops say what came last where they are
//!                   known
std::vector<critical_job> measured_path(const std::vector<traced>& measured,
                                        const replay_input& scheduled);

//! A picture of beside_measured() with that outlined, and what it is made of behind the subtitle.
void outline_measured(timeline_picture& picture, const replay_input& scheduled,
                      const std::vector<critical_job>& path);

}  // namespace stretto::tool
