#pragma once

#include <string>

#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

//! "rank 1, instruction 4, 2F0 (stage 2, forward, micro-batch 0)".
std::string describe(const plan_view& plan, int instruction);
//! "2F0 (stage 2, forward, micro-batch 0)".
std::string describe(const job& what);

}  // namespace stretto::executor
