#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cuda/driver/simulated_gpu.hpp"
#include "cuda/support.hpp"
#include "driver/simulated_nccl.hpp"
#include "nccl/support.hpp"
#include "stretto/executor/bootstrap.hpp"
#include "stretto/executor/cuda/nccl_transport.hpp"

namespace stretto::test {

//! All ranks of a pipeline, each on a GPU of its own.
struct nccl_run {
  explicit nccl_run(int ranks, layout how = layout::separate, executor::nccl_settings settings = {},
                    std::chrono::nanoseconds deadline = std::chrono::minutes(1),
                    std::uint64_t seed = 1)
      : plans(plans_of(ranks, how)), inner(ranks) {
    gpu::reset(seed, ranks);
    nccl::reset();
    for (executor::stage* const each : inner.pointers)
      outer.push_back(std::make_unique<enqueueing_stage>(*each));
    for (const auto& each : outer) pointers.push_back(each.get());
    use_arenas({});
    settings.kernels_loaded = true;
    with.wire = executor::make_nccl_transport(*alone.front(), settings);
    with.deadline = deadline;
    with.grace = std::chrono::seconds(1);
  }
  void use_arenas(executor::arena_memory by) {
    with.make_device = [by](const plan_view& plan, executor::monitor& watch) {
      return executor::make_cuda_device(
          plan, {.device = plan.rank, .arena = by, .patience = std::chrono::seconds(1)}, watch);
    };
  }
  void start() {
    engine = std::make_unique<executor::engine>(views(plans), pointers, std::move(with));
  }
  void check_left() const {
    CHECK(gpu::alive() == gpu::handles{});
    CHECK(nccl::alive() == 0);
    for (const std::string& each : gpu::complaints()) FAIL_CHECK(each);
  }

  std::vector<plan_builder> plans;
  sample_stages inner;
  std::vector<std::unique_ptr<enqueueing_stage>> outer{};
  std::vector<executor::stage*> pointers{};
  std::vector<std::unique_ptr<executor::bootstrap>> alone = executor::make_local_bootstraps(1);
  executor::options with{};
  std::unique_ptr<executor::engine> engine{};
};

//! The arguments of all calls of the name.
inline std::vector<std::string> called(const std::string& name, std::size_t from = 0) {
  std::vector<std::string> all;
  for (std::size_t at = from; at < gpu::calls().size(); ++at)
    if (gpu::calls()[at].name == name) all.push_back(gpu::calls()[at].arguments);
  return all;
}

}  // namespace stretto::test
