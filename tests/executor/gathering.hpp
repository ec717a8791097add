#pragma once

#include <algorithm>
#include <atomic>
#include <span>
#include <vector>

#include "executor/plan_builder.hpp"
#include "stretto/executor/callbacks.hpp"

namespace stretto::test {

//! Three ranks that gather parts of five numbers each, twice in a step, with two sums in between:
//! of one all get all, of the other each gets its two of six numbers.
struct gathering {
  static constexpr int ranks = 3;
  static constexpr std::size_t part = 5;

  gathering() {
    for (int r = 0; r < ranks; ++r) {
      plan_builder plan(r, ranks, {"compute", "collectives"});
      plan.add_group({2, 0, 1}, 6, false);
      const int weights =
          plan.add_buffer(buffer_role::weights, 0, 0, ranks * static_cast<std::int64_t>(4 * part));
      const int sums = plan.add_buffer(buffer_role::collective, 0, 0, 24);
      const int dealt = plan.add_buffer(buffer_role::collective, 0, 0, 24);
      const auto gather = [&](int time, std::vector<int> after) {
        const int put =
            plan.run({0, time, 0, job_kind::unshard}, 0,
                     {{weights, buffer_role::weights, access::write}}, std::move(after));
        return plan.all_gather(0, 1, weights, {put});
      };
      const int once = gather(0, {});
      const int ready = plan.run({0, 0, 0, job_kind::reduce_grad}, 0,
                                 {{weights, buffer_role::weights, access::read},
                                  {sums, buffer_role::collective, access::write},
                                  {dealt, buffer_role::collective, access::write}},
                                 {once});
      const int summed = plan.all_reduce(0, 1, sums, {ready});
      const int own = plan.reduce_scatter(0, 1, dealt, {ready});
      const int twice = gather(1, {});
      plan.run({0, 0, 0, job_kind::optimizer}, 0,
               {{weights, buffer_role::weights, access::read},
                {sums, buffer_role::collective, access::read},
                {dealt, buffer_role::collective, access::read}},
               {summed, own, twice});
      plans.push_back(plan.end());
    }
    callbacks.unshard = [](const executor::context& at) {
      std::ranges::fill(at.view<float>(buffer_role::weights), -1.0F);
      const std::span<float> mine = floats(at.own_weights());
      for (std::size_t k = 0; k < mine.size(); ++k) mine[k] = value(at.rank, at.what.microbatch, k);
    };
    callbacks.reduce_grad = [this](const executor::context& at) {
      check(at, 0);
      std::ranges::fill(at.view<float>(buffer_role::collective), 1.0F);
      const std::span<float> mine = floats(at.buffers.back().data);
      for (std::size_t k = 0; k < mine.size(); ++k) mine[k] = value(at.rank, 0, k);
    };
    callbacks.optimizer = [this](const executor::context& at) {
      check(at, 1);
      for (const float each : at.view<float>(buffer_role::collective)) wrong += each == 3 ? 0 : 1;
      const std::span<const float> mine = floats(at.buffers.back().own);
      wrong += mine.size() == 2 ? 0 : 1;
      for (std::size_t k = 0; k < mine.size(); ++k) {
        const std::size_t number = 2 * static_cast<std::size_t>(at.rank) + k;
        wrong += mine[k] == value(0, 0, number) + value(1, 0, number) + value(2, 0, number) ? 0 : 1;
      }
    };
  }

  static std::span<float> floats(std::span<std::byte> bytes) {
    return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
  }
  static float value(int rank, int time, std::size_t k) {
    return static_cast<float>(100 * rank + 10 * time) + static_cast<float>(k) / 8;
  }
  void check(const executor::context& at, int time) {
    const std::span<const float> all = at.view<float>(buffer_role::weights);
    wrong += all.size() == ranks * part ? 0 : 1;
    for (std::size_t k = 0; k < all.size(); ++k)
      wrong += all[k] == value(static_cast<int>(k / part), time, k % part) ? 0 : 1;
    ++checked;
  }

  std::vector<plan_builder> plans{};
  executor::job_callbacks callbacks{};
  std::atomic<int> wrong{0};
  std::atomic<int> checked{0};
};

}  // namespace stretto::test
