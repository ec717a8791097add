#pragma once

#include <cstdint>
#include <vector>

#include "executor/pipeline.hpp"

namespace stretto::test {

//! Plans of a pipeline whose ranks sum twice with all others at the end of a step.
inline std::vector<plan_builder> plans_of(int ranks, layout how) {
  std::vector<plan_builder> made = pipeline_plans(ranks, 4, 7, how);
  std::vector<std::int32_t> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(rank);
  for (plan_builder& each : made) {
    each.instructions.pop_back();
    for (const bool wide : {false, true}) {
      const int sums = each.add_buffer(buffer_role::collective, wide ? 1 : 0, 0, 64);
      each.all_reduce(each.add_group(all, wide ? 5 : 11, wide), 0, sums);
    }
    each.end();
  }
  return made;
}

}  // namespace stretto::test
