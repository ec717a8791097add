#pragma once

#include <cstdint>
#include <vector>

#include "step.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/variants.hpp"

namespace stretto::tool {

//! A step's report with its ranks and its timeline (as stretto::measure has them), which may be
//! left out.
struct simulated {
  report all;
  std::vector<rank_report> ranks;
  std::vector<job_time> timeline;
};
simulated simulate(const step& from, bool with_timeline = true);
//! What is to be short.
std::int64_t length_of(const step& made, schedule::objective_kind objective);

}  // namespace stretto::tool
