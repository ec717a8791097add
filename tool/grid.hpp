#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "finer_unit.hpp"
#include "stretto/model/rows.hpp"
#include "stretto/plan/report.hpp"

namespace stretto::tool {

//! A schedule as text, jobs in PyTorch's letters. By time (one line per rank, a job as wide as it
//! is long, dots for idle time) when that fits `columns`; else, and for lists with messages, by
//! step (one line per step, one column per rank).
//! @param timeline as stretto::measure has it; empty: by step
//! @param time of the timeline
std::string print_grid(const job_rows& rows, std::span<const job_time> timeline,
                       const finer_unit& time, int columns, bool colour);

}  // namespace stretto::tool
