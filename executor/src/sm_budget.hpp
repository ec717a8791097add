#pragma once

#include <vector>

#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

//! For each instruction of a plan of ops, the multiprocessors that it may use: those of the machine
//! less what communication holds (op_part::holds) that may be under way beside it, because neither
//! streams nor events put it before or after. 0 where that is none of them, or none is known.
//! @param multiprocessors  of the machine; 0: unknown
std::vector<int> sm_budgets(const plan_view& plan, int multiprocessors);

}  // namespace stretto::executor
