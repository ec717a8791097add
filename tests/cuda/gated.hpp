#pragma once

#include <cstdint>
#include <vector>

#include "executor/pipeline.hpp"

namespace stretto::test {

//! Two ranks that sum what a job of each has left; another job of each waits for the sum to start.
struct gated_sum {
  explicit gated_sum(std::int64_t elements) {
    for (int r = 0; r < 2; ++r) {
      plan_builder plan(r, 2, {"compute", "sums"});
      plan.add_group({0, 1}, elements, false);
      const int where = plan.add_buffer(buffer_role::collective, 0, 0, elements * 4);
      const int ready = plan.run({r, 0, 0, job_kind::reduce_grad}, 0,
                                 {{where, buffer_role::collective, access::write}});
      const int sum = plan.all_reduce(0, 1, where, {ready});
      const int beside = plan.run({r, 0, 0, job_kind::forward}, 0);
      plan.at(beside).first_wait = static_cast<std::int32_t>(plan.waits.size());
      plan.at(beside).wait_count = 1;
      const std::int32_t started = plan.head.events++;
      plan.waits.push_back({started, wait_reason::starts_before, false});
      plans.push_back(plan.end());
      parts.emplace_back(plan.instructions.size());
      for (op_part& each : parts.back()) each.op = 0;
      parts.back()[static_cast<std::size_t>(sum)].started = started;
      parts.back()[static_cast<std::size_t>(sum)].holds = 16;
    }
  }
  std::vector<plan_view> given() const {
    std::vector<plan_view> made;
    for (std::size_t r = 0; r < plans.size(); ++r) {
      made.push_back(plans[r].view());
      made.back().parts = parts[r];
    }
    return made;
  }
  std::vector<plan_builder> plans{};
  std::vector<std::vector<op_part>> parts{};
};

}  // namespace stretto::test
