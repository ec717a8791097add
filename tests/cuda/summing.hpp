#pragma once

#include <span>
#include <type_traits>
#include <vector>

#include "executor/pipeline.hpp"
#include "stretto/executor/callbacks.hpp"

namespace stretto::test {

//! Three ranks that sum 1 / (rank + 2), twice in a step.
struct summing {
  explicit summing(bool wide) {
    for (int r = 0; r < 3; ++r) {
      plan_builder plan(r, 3, {"compute", "sums"});
      plan.add_group({2, 0, 1}, 37, wide);
      const int where = plan.add_buffer(buffer_role::collective, 0, 0, 37 * (wide ? 8 : 4));
      const int first = plan.run({r, 0, 0, job_kind::reduce_grad}, 0,
                                 {{where, buffer_role::collective, access::write}});
      const int once = plan.all_reduce(0, 1, where, {first});
      const int between = plan.run({r, 1, 0, job_kind::reduce_grad}, 0,
                                   {{where, buffer_role::collective, access::read_write}}, {once});
      const int twice = plan.all_reduce(0, 1, where, {between});
      plan.run({r, 0, 0, job_kind::optimizer}, 0, {{where, buffer_role::collective, access::read}},
               {twice});
      plans.push_back(plan.end());
    }
    callbacks.reduce_grad = [wide](const executor::context& at) {
      const auto fill = [&](auto values) {
        for (auto& each : values) {
          if (at.what.microbatch == 0) each = 1;
          each /= static_cast<std::remove_reference_t<decltype(each)>>(at.rank + 2);
        }
      };
      wide ? fill(at.view<double>(buffer_role::collective))
           : fill(at.view<float>(buffer_role::collective));
    };
    callbacks.optimizer = [this, wide](const executor::context& at) {
      const auto check = [&]<class Element>(std::span<Element> values) {
        const auto sum = [](Element start) {
          return start / Element(2) + start / Element(3) + start / Element(4);
        };
        for (const Element each : values) wrong += each == sum(sum(Element(1))) ? 0 : 1;
        ++checked;
      };
      wide ? check(at.view<double>(buffer_role::collective))
           : check(at.view<float>(buffer_role::collective));
    };
  }
  std::vector<plan_builder> plans{};
  executor::job_callbacks callbacks{};
  int wrong = 0;
  int checked = 0;
};

}  // namespace stretto::test
