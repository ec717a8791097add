// Training between simulated GPUs with a simulated NCCL, against the same on the host: processes
// are threads here, each with its own part of the pipeline.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cuda/on_gpu.hpp"
#include "cuda/over_nccl.hpp"
#include "nccl/driver/simulated_nccl.hpp"
#include "pipeline/pipeline.hpp"
#include "stretto/executor/bootstrap.hpp"
#include "train_cuda/compare.hpp"
#include "train_cuda/simulated_kernels.hpp"

namespace {

namespace executor = stretto::executor;
namespace gpu = stretto::test::gpu;
namespace nccl = stretto::test::nccl;
using train::pipeline_settings;

void reset(std::uint64_t seed, int gpus) {
  // Not by threads beside one another.
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  train::cuda::widen_queues();
  gpu::reset(seed, gpus);
  nccl::reset();
  train_cuda_test::define_kernels();
}

//! Products of every size, on as many multiprocessors, and all other kernels were known before
//! anybody could wait for a message.
void check_known() {
  std::set<std::string> products, kernels;
  bool connected = false;
  for (const gpu::call& each : gpu::calls()) {
    const std::string_view name = each.name;
    connected = connected || name == "ncclCommInitRankConfig";
    const auto know = [&](std::set<std::string>& known, const char* end) {
      const std::string text = each.arguments.substr(0, each.arguments.find(end));
      if (known.insert(text).second && connected) FAIL_CHECK(text);
    };
    if (each.arguments.starts_with("cublas")) know(products, ", stream");
    if (name == "cudaLaunchKernelExC") know(kernels, ", ");
  }
  CHECK(products.size() > 10);
  CHECK(kernels.size() > 10);
}

//! Every process compares what it has gathered: test(process, how settings are moved to its GPUs).
template <class Test>
void run(int processes, int gpus, std::uint64_t seed, Test test) {
  CAPTURE(processes);
  reset(seed, gpus);
  const auto between = executor::make_local_bootstraps(processes);
  std::vector<std::thread> all;
  for (int process = 0; process < processes; ++process)
    all.emplace_back([&, process] {
      try {
        test(process, [&](pipeline_settings& to) {
          to.transport = "nccl";
          to.between = between[static_cast<std::size_t>(process)].get();
          train::cuda::run_over_nccl(to, {}, process);
        });
      } catch (const std::exception& failed) {
        FAIL_CHECK("process " << process << ": " << std::string(failed.what()));
      }
    });
  for (std::thread& each : all) each.join();
  for (const std::string& each : gpu::complaints()) FAIL_CHECK(each);
  CHECK(gpu::alive() == gpu::handles{});
  CHECK(nccl::alive() == 0);
}

void compare(const pipeline_settings& settings, int processes, int gpus, std::uint64_t seed,
             int head_pieces = 1) {
  run(processes, gpus, seed,
      [&](int, const auto& move) { train_cuda_test::compare(settings, move, head_pieces); });
  check_known();
  CHECK(nccl::communicators().size() > 4);
  CHECK(nccl::aborted() == 0);
}

void compare_graph(const pipeline_settings& settings, int processes, std::uint64_t seed) {
  run(processes, processes, seed,
      [&](int, const auto& move) { train_cuda_test::compare_graph(settings, move); });
  CHECK(nccl::aborted() == 0);
}

//! What every process says, each with these GPUs, and as the place on its machine the number.
void refuse(const pipeline_settings& settings, int gpus,
            const std::vector<std::vector<int>>& named, const std::string& rule, int local = 0) {
  reset(1, gpus);
  const auto between = executor::make_local_bootstraps(static_cast<int>(named.size()));
  std::vector<std::thread> all;
  for (std::size_t process = 0; process < named.size(); ++process)
    all.emplace_back([&, process] {
      pipeline_settings to = settings;
      to.transport = "nccl";
      to.between = between[process].get();
      CHECK_THROWS_WITH_AS(
          train::cuda::run_over_nccl(to, named[process], local + static_cast<int>(process)),
          rule.c_str(), train::bad_setting);
    });
  for (std::thread& each : all) each.join();
}

}  // namespace

TEST_CASE("one process trains on several GPUs as on the host") {
  compare({.schedule = "1f1b", .ranks = 3, .microbatches = 4}, 1, 3, 1);
}

TEST_CASE("so do several processes, of one worker or several") {
  compare({.schedule = "zbv", .ranks = 3, .microbatches = 6}, 3, 3, 2);
  compare({.schedule = "1f1b", .ranks = 2, .microbatches = 4, .tensor_parallel = 2,
           .products = train::precision::bf16},
          2, 4, 3);
  compare({.schedule = "1f1b", .ranks = 1, .microbatches = 2, .tensor_parallel = 2,
           .ops = "in_pieces", .pieces = 2},
          2, 2, 5);
  compare({.schedule = "zbv", .ranks = 3, .microbatches = 3}, 3, 3, 7, 4);
  // Of these, two evaluate nothing.
  compare({.schedule = "1f1b", .ranks = 2, .microbatches = 2, .data_parallel = 2}, 4, 4, 4);
}

TEST_CASE("of the layers a process holds those of its own workers alone, in GPUs or not") {
  reset(6, 3);
  const auto between = executor::make_local_bootstraps(3);
  const train::config model = pipeline_test::tiny(6, true);
  std::vector<std::set<int>> held(between.size());
  std::vector<std::thread> all;
  for (std::size_t process = 0; process < between.size(); ++process)
    all.emplace_back([&, process] {
      pipeline_settings to{.schedule = "1f1b", .ranks = 3, .microbatches = 4};
      to.transport = "nccl";
      to.between = between[process].get();
      train::cuda::run_over_nccl(to, {}, static_cast<int>(process));
      train::pipeline there(model, pipeline_test::text(), to, pipeline_test::learning());
      for (int layer = 0; layer < model.layer_count(); ++layer) {
        if (there.holds(layer))
          held[process].insert(layer);
        else
          CHECK_THROWS_AS(there.parameters(layer), std::invalid_argument);
      }
    });
  for (std::thread& each : all) each.join();
  std::set<int> together;
  std::size_t sum = 0;
  for (const std::set<int>& each : held) {
    CHECK_FALSE(each.empty());
    sum += each.size();
    together.insert(each.begin(), each.end());
  }
  CHECK(sum == together.size());
  CHECK(static_cast<int>(sum) == model.layer_count());
}

TEST_CASE("graphs of several processes train to the bits of steps that are issued") {
  compare_graph({.schedule = "zbv", .ranks = 3, .microbatches = 6}, 3, 6);
  compare_graph({.schedule = "1f1b", .ranks = 1, .microbatches = 2, .tensor_parallel = 2}, 2, 7);
  compare_graph({.schedule = "1f1b", .ranks = 1, .microbatches = 2, .data_parallel = 2}, 2, 8);
}

TEST_CASE(
    "graphs are refused to a process with two workers, and beside one that issues its steps") {
  pipeline_settings two{.ranks = 2};
  two.graph = true;
  refuse(two, 2, {{}},
         "--device cuda: process 0: it has 2 workers, and a graph with NCCL's operations (--graph) "
         "needs a process for each");
  const train::config model = pipeline_test::tiny(6, true);
  run(2, 2, 9, [&](int process, const auto& move) {
    pipeline_settings settings{.schedule = "1f1b", .ranks = 2};
    settings.graph = process == 1;
    move(settings);
    CHECK_THROWS_WITH_AS(
        train::pipeline(model, pipeline_test::text(), settings, pipeline_test::learning()),
        "process 1 has steps recorded as a graph, process 0 has steps issued one by one",
        executor::plan_error);
  });
}

TEST_CASE("workers without a GPU of their own are refused, by every process") {
  const pipeline_settings two{.ranks = 2}, four{.ranks = 2, .tensor_parallel = 2};
  refuse(four, 3, {{}},
         "--device cuda: process 0: it has 4 workers, which need a GPU each, and sees 3");
  refuse(four, 3, {{0, 1}, {2}},
         "--device cuda: process 1: it has 2 workers, which need a GPU each, and 1 are named");
  const std::string shared =
      ", and NCCL is between different GPUs: there are more workers on a machine than GPUs, or the "
      "same are named twice";
  refuse(two, 1, {{}, {}},
         "--device cuda: process 1 has a worker on the GPU 0000:10:00.0, where process 0 has one" +
             shared);
  // What sees no GPU but its own need not be told which is its own.
  refuse(two, 1, {{}, {}},
         "--device cuda: process 1 has a worker on the GPU 0000:10:00.0, where process 0 has one" +
             shared,
         -1);
  refuse(two, 2, {{1, 1}},
         "--device cuda: process 0 has a worker on the GPU 0000:11:00.0, where process 0 has one" +
             shared);
  refuse(two, 2, {{0}, {2}}, "--device cuda: process 1: there are 2 GPUs, no number 2");
  refuse(two, 2, {{}, {1}},
         "--device cuda: process 0: the launcher does not say which process of its machine it is "
         "(LOCAL_RANK), and so not which GPU: name it, as in cuda:1",
         -1);
  refuse(two, 4, {{}, {}, {}},
         "--transport nccl: 3 processes are more than the 2 workers of the pipeline");
}
