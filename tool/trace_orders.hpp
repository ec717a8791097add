#pragma once

#include <cstdint>
#include <string>

#include "measured_trace.hpp"
#include "stretto/model/rows.hpp"

namespace stretto::tool {

//! The first order of the schedule that a step contradicts, in a sentence: a rank's list, what a
//! job needs, its messages. Empty: none.
//! @throws bad_input when it is a trace of other jobs
std::string broken_order(const measured_trace& trace, std::int64_t number, const job_rows& rows);
//! The same of all steps, the first that does.
std::string broken_order(const measured_trace& trace, const job_rows& rows);

}  // namespace stretto::tool
