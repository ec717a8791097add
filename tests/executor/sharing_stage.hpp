#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "stretto/executor/stage.hpp"

namespace stretto::test {

//! One worker of a rank's: y = x + sum over workers k of (k + 1) x, in the ops of two_products. All
//! numbers are whole and small, so that every order of sums gives the same bits.
struct sharing_stage final : executor::stage {
  static constexpr std::int64_t bytes = 640;
  static constexpr std::size_t elements = bytes / sizeof(float);

  int worker = 0;
  int replica = 0;
  int stages = 1;
  std::vector<double> gradients;  // by stage
  std::vector<int> stage_of;      // by group of replicas, as it was written
  std::vector<double> summed;     // by stage, what the optimizer reads
  std::atomic<int> ops{0};

  static std::span<float> part(const executor::context& at, std::size_t of) {
    return at.view<float>(buffer_role::stash).subspan(of * elements, elements);
  }
  void run(const executor::context& at) override {
    if (at.op < 0) return end(at);
    ++ops;
    CHECK(at.pieces >= 1);
    const bool forward = at.what.kind == job_kind::forward;
    if (forward)
      run_forward(at);
    else
      run_backward(at, at.what.kind == job_kind::backward_weight ? at.op + 5 : at.op);
  }

 private:
  //! What each replica adds is its own.
  void end(const executor::context& at) {
    if (at.what.kind == job_kind::reduce_grad) {
      const auto group = static_cast<std::size_t>(at.what.microbatch);
      stage_of.resize(std::max(stage_of.size(), group + 1), -1);
      stage_of[group] = at.what.stage;
      const double own = gradients[static_cast<std::size_t>(at.what.stage)] * (replica + 1);
      std::ranges::fill(at.view<float>(buffer_role::collective, at.what.microbatch),
                        static_cast<float>(own));
    } else if (at.what.kind == job_kind::optimizer) {
      for (std::size_t group = 0; group < stage_of.size(); ++group) {
        const auto sum = at.view<float>(buffer_role::collective, static_cast<int>(group));
        if (sum.empty()) continue;
        CHECK(std::ranges::count(sum, sum.front()) == static_cast<std::ptrdiff_t>(elements));
        summed[static_cast<std::size_t>(stage_of[group])] = sum.front();
      }
    }
  }
  // Of an op in pieces, its own elements.
  template <class Each>
  void for_piece(const executor::context& at, const Each& each) const {
    const auto pieces = static_cast<std::size_t>(at.pieces);
    const auto piece = static_cast<std::size_t>(at.piece);
    for (std::size_t one = elements * piece / pieces; one < elements * (piece + 1) / pieces; ++one)
      each(one);
  }
  void run_forward(const executor::context& at) {
    const auto x = part(at, 0);
    const auto sum = at.view<float>(buffer_role::workspace);
    switch (at.op) {
      case 0:
        for (std::size_t one = 0; one < elements; ++one)
          x[one] = at.what.stage == 0 ? static_cast<float>(at.what.microbatch + 1)
                                      : at.view<float>(buffer_role::input)[one];
        break;
      case 1:
        for_piece(at, [&](std::size_t one) {
          part(at, 1)[one] = x[one] * static_cast<float>(worker + 1);
        });
        break;
      case 2:
        for_piece(at, [&](std::size_t one) { sum[one] = part(at, 1)[one]; });
        break;
      default:
        if (const auto y = at.view<float>(buffer_role::output); !y.empty())
          for_piece(at, [&](std::size_t one) { y[one] = sum[one] + x[one]; });
    }
  }
  void run_backward(const executor::context& at, int op) {
    const auto dy = part(at, 2);
    const auto sum = at.view<float>(buffer_role::workspace);
    double& gradient = gradients[static_cast<std::size_t>(at.what.stage)];
    switch (op) {
      case 0:
        for (std::size_t one = 0; one < elements; ++one)
          dy[one] = at.what.stage + 1 == stages ? 1.0F
                                                : at.view<float>(buffer_role::output_gradient)[one];
        break;
      case 1:
        for_piece(at, [&](std::size_t one) {
          part(at, 3)[one] = dy[one] * static_cast<float>(worker + 1);
        });
        break;
      case 2:
        for_piece(at, [&](std::size_t one) { sum[one] = part(at, 3)[one]; });
        break;
      case 4:
        if (const auto dx = at.view<float>(buffer_role::input_gradient); !dx.empty())
          for_piece(at, [&](std::size_t one) { dx[one] = sum[one] + dy[one]; });
        break;
      default:
        for (std::size_t one = 0; one < elements; ++one)
          gradient += static_cast<double>(part(at, 0)[one]) * static_cast<double>(dy[one]);
    }
  }
};

//! What each worker sums for the stage in a step.
inline double expected(int stage, int stages, int microbatches, int workers) {
  const double factor = 1 + workers * (workers + 1) / 2;
  double sum = 0;
  for (int microbatch = 0; microbatch < microbatches; ++microbatch)
    sum += (microbatch + 1) * std::pow(factor, stage) * std::pow(factor, stages - 1 - stage);
  return 2 * sum * static_cast<double>(sharing_stage::elements);  // both weights' ops
}

}  // namespace stretto::test
