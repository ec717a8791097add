#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "step.hpp"
#include "stretto/plan/critical_path.hpp"

namespace stretto::tool {

//! What of a critical path each rank's jobs take.
std::vector<std::int64_t> critical_by_rank(const step& from, const std::vector<critical_job>& path);
//! What it is made of, then where it goes: a line for all that follow one another on a rank.
std::string critical_text(const step& from, const std::vector<critical_job>& path);
nlohmann::ordered_json critical_json(const step& from, const std::vector<critical_job>& path);

}  // namespace stretto::tool
