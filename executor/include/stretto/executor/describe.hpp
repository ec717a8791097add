#pragma once

#include <string>

#include "stretto/model/plan_view.hpp"

namespace stretto::executor {

//! "rank 1"; of workers that share the ranks' stages (stretto::shared) "rank 1 worker 2".
//! @param number  as plan_view::rank and instruction::peer have it
std::string name_of_rank(const plan_view& plan, int number);
//! "rank 1, instruction 4, 2F0 (stage 2, forward, micro-batch 0)".
std::string describe(const plan_view& plan, int instruction);
//! "2F0 (stage 2, forward, micro-batch 0)".
std::string describe(const job& what);

}  // namespace stretto::executor
