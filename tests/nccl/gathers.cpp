// Gathers of weights by NCCL, and sums of which each gets its part: in place, on the communicator
// of the group that also sums, of which each kind and size is used once before the first step.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cuda/driver/simulated_gpu.hpp"
#include "cuda/support.hpp"
#include "driver/simulated_nccl.hpp"
#include "executor/gathering.hpp"
#include "stretto/executor/bootstrap.hpp"
#include "stretto/executor/cuda/device.hpp"
#include "stretto/executor/cuda/nccl_transport.hpp"
#include "stretto/executor/engine.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

long calls_of(std::string_view name) {
  return std::ranges::count_if(
      gpu::calls(), [&](const gpu::call& each) { return std::string_view(each.name) == name; });
}

}  // namespace

TEST_CASE("what each rank gathers is all ranks' parts, and what it sums its own, in issued steps") {
  for (const std::uint64_t seed : {1U, 2U, 3U})
    for (const bool registered : {false, true}) {
      gpu::reset(seed, gathering::ranks);
      nccl::reset();
      gathering run;
      executor::callback_stage inner(run.callbacks);
      enqueueing_stages stages({&inner, &inner, &inner});
      const auto alone = executor::make_local_bootstraps(1);
      executor::options with;
      with.make_device = [&](const plan_view& plan, executor::monitor& watch) {
        executor::cuda_settings settings{.device = plan.rank};
        if (registered) settings.arena = executor::nccl_memory();
        return executor::make_cuda_device(plan, settings, watch);
      };
      with.wire = executor::make_nccl_transport(*alone[0],
                                                {.registered = registered, .kernels_loaded = true});
      {
        executor::engine engine(views(run.plans), stages.pointers, std::move(with));
        // Of each kind the first, by each rank.
        CHECK(calls_of("ncclAllGather") == 3);
        CHECK(calls_of("ncclAllReduce") == 3);
        CHECK(calls_of("ncclReduceScatter") == 3);
        CHECK(nccl::communicators().size() == 3);
        for (int step = 0; step < 3; ++step) engine.step();
        CHECK(run.wrong == 0);
        CHECK(run.checked == 18);
        CHECK(calls_of("ncclAllGather") == 3 + 3 * 2 * 3);
        CHECK(calls_of("ncclAllReduce") == 3 + 3 * 3);
        CHECK(calls_of("ncclReduceScatter") == 3 + 3 * 3);
      }
      CHECK(gpu::alive() == gpu::handles{});
      CHECK(nccl::alive() == 0);
      CHECK(gpu::complaints().empty());
    }
}

TEST_CASE("of a group's gathers each size is used before the first step") {
  constexpr int ranks = 2;
  gpu::reset(1, ranks);
  nccl::reset();
  std::vector<plan_builder> plans;
  for (int rank = 0; rank < ranks; ++rank) {
    plan_builder plan(rank, ranks, {"compute", "collectives"});
    plan.add_group({0, 1}, 0, false);
    std::vector<int> gathered;
    for (const std::int64_t part : {16, 4096, 16}) {
      const auto time = static_cast<std::int32_t>(gathered.size());
      const int weights = plan.add_buffer(buffer_role::weights, 0, 0, ranks * part);
      const int put = plan.run({0, time, 0, job_kind::unshard}, 0,
                               {{weights, buffer_role::weights, access::write}});
      gathered.push_back(plan.all_gather(0, 1, weights, {put}));
    }
    plan.run({0, 0, 0, job_kind::optimizer}, 0, {}, std::move(gathered));
    plans.push_back(plan.end());
  }
  executor::job_callbacks callbacks;
  callbacks.unshard = callbacks.optimizer = [](const executor::context&) {};
  executor::callback_stage inner(callbacks);
  enqueueing_stages stages({&inner, &inner});
  const auto alone = executor::make_local_bootstraps(1);
  executor::options with = on_gpus(ranks);
  with.wire = executor::make_nccl_transport(*alone[0], {.kernels_loaded = true});
  executor::engine engine(views(plans), stages.pointers, std::move(with));
  CHECK(calls_of("ncclAllGather") == 2 * ranks);
  for (int step = 0; step < 2; ++step) engine.step();
  CHECK(calls_of("ncclAllGather") == (2 + 2 * 3) * ranks);
  CHECK(gpu::complaints().empty());
}
