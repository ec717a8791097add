#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "finer_unit.hpp"
#include "stretto/plan/critical_path.hpp"

namespace stretto::tool {

//! What of a critical path each rank's jobs take.
std::vector<std::int64_t> critical_by_rank(int ranks, const std::vector<critical_job>& path);
//! What it is made of, then where it goes: a line for all that follow one another on a rank, or for
//! a micro-batch's way through several.
//! @param rows  the lists of the step
//! @param time  the unit of the path's times
std::string critical_text(const job_rows& rows, const finer_unit& time,
                          const std::vector<critical_job>& path);
nlohmann::ordered_json critical_json(const job_rows& rows, const finer_unit& time,
                                     const std::vector<critical_job>& path);

}  // namespace stretto::tool
