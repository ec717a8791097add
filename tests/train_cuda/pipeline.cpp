// Training in a pipeline on a simulated GPU, against the same on the host.
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "cuda/on_gpu.hpp"
#include "pipeline/pipeline.hpp"
#include "train_cuda/compare.hpp"
#include "train_cuda/simulated_kernels.hpp"

namespace {

using train::pipeline_settings;

void compare(const pipeline_settings& settings, std::uint64_t seed, int gpus = 1,
             int head_pieces = 1) {
  stretto::test::gpu::reset(seed, gpus);
  train_cuda_test::define_kernels();
  train_cuda_test::compare(settings, [=](pipeline_settings& to) {
    std::vector<int> all(static_cast<std::size_t>(gpus));
    std::iota(all.begin(), all.end(), 0);
    train::cuda::run_on_gpus(to, all);
  }, head_pieces);
  CHECK(stretto::test::gpu::complaints().empty());
  CHECK(stretto::test::gpu::alive() == stretto::test::gpu::handles{});
}

void compare_graph(const pipeline_settings& settings, std::uint64_t seed, int gpus = 1,
                   int head_pieces = 1) {
  stretto::test::gpu::reset(seed, gpus);
  train_cuda_test::define_kernels();
  train_cuda_test::compare_graph(settings, [=](pipeline_settings& to) {
    std::vector<int> all(static_cast<std::size_t>(gpus));
    std::iota(all.begin(), all.end(), 0);
    train::cuda::run_on_gpus(to, all);
  }, head_pieces);
  for (const std::string& each : stretto::test::gpu::complaints()) FAIL_CHECK(each);
  CHECK(stretto::test::gpu::alive() == stretto::test::gpu::handles{});
}

}  // namespace

TEST_CASE("a pipeline on a GPU trains as on the host") {
  compare({.schedule = "1f1b", .ranks = 3, .microbatches = 4}, 1);
  compare({.schedule = "zbv_greedy", .ranks = 2, .microbatches = 4}, 2);
  pipeline_settings again{.schedule = "interleaved", .ranks = 2, .microbatches = 4};
  again.recompute = *stretto::memory::read_window("all");
  compare(again, 3);
  compare({.schedule = "dualpipe", .ranks = 2, .microbatches = 4}, 4);
  compare({.schedule = "seq_1f1b", .ranks = 2, .microbatches = 3, .slices = 2}, 5);
  compare({.schedule = "interleaved_zb", .ranks = 2, .microbatches = 3, .slices = 2}, 12);
  compare({.schedule = "seq_1f1b", .ranks = 2, .microbatches = 3, .slices = 3,
           .slice_lengths = "3,1,4"},
          13);
}

TEST_CASE("so does a head in pieces, on as many ranks") {
  compare({.schedule = "zbv", .ranks = 4, .microbatches = 4}, 15, 2, 4);
  compare({.schedule = "chimera", .ranks = 2, .microbatches = 4, .data_parallel = 2}, 16, 1, 2);
  compare({.schedule = "seq_1f1b", .ranks = 2, .microbatches = 3, .slices = 2,
           .products = train::precision::bf16},
          17, 1, 4);
  compare_graph({.schedule = "zbv", .ranks = 2, .microbatches = 4}, 18, 1, 4);
}

TEST_CASE("so do workers that share a rank") {
  compare({.schedule = "1f1b", .ranks = 2, .microbatches = 4, .tensor_parallel = 2}, 6);
  compare({.schedule = "1f1b", .ranks = 2, .microbatches = 2, .data_parallel = 2}, 7);
}

TEST_CASE("so do ops in pieces, and their sums") {
  pipeline_settings settings{.schedule = "zbv", .ranks = 2, .microbatches = 4};
  settings.tensor_parallel = 2;
  settings.ops = "in_pieces";
  settings.pieces = 3;
  compare(settings, 13);
}

TEST_CASE("so they do in bf16, with the host in bf16") {
  constexpr auto bf16 = train::precision::bf16;
  compare({.schedule = "zbv_greedy", .ranks = 2, .microbatches = 4, .products = bf16}, 9);
  compare({.schedule = "seq_1f1b", .ranks = 2, .microbatches = 3, .slices = 2, .products = bf16},
          10);
  compare({.schedule = "1f1b", .ranks = 2, .microbatches = 2, .tensor_parallel = 2,
           .products = bf16},
          11);
}

TEST_CASE("on several GPUs, which workers take in turn") {
  compare({.schedule = "zbv", .ranks = 3, .microbatches = 6, .tensor_parallel = 2}, 12, 2);
}

TEST_CASE("stashes that go to the host come back") {
  pipeline_settings settings{.schedule = "1f1b", .ranks = 2, .microbatches = 4};
  settings.offload = *stretto::memory::read_offload("all");
  compare(settings, 8);
  settings.products = train::precision::bf16;
  compare(settings, 14);
}

TEST_CASE("a graph of the step trains to the bits of steps that are issued") {
  compare_graph({.schedule = "1f1b", .ranks = 3, .microbatches = 4}, 1);
  compare_graph({.schedule = "seq_1f1b", .ranks = 2, .microbatches = 3, .slices = 2,
                 .slice_lengths = "5,3"},
                2);
  pipeline_settings again{.schedule = "interleaved", .ranks = 2, .microbatches = 4};
  again.recompute = *stretto::memory::read_window("1/2");
  again.products = train::precision::bf16;
  compare_graph(again, 3);
  pipeline_settings away{.schedule = "1f1b", .ranks = 2, .microbatches = 4};
  away.offload = *stretto::memory::read_offload("1/2");
  compare_graph(away, 7);
  away.graph_progress = false;
  compare_graph(away, 8);
  compare_graph({.schedule = "dualpipe", .ranks = 2, .microbatches = 4}, 4, 2);
  pipeline_settings workers{.schedule = "zbv", .ranks = 2, .microbatches = 4};
  workers.tensor_parallel = 2;
  workers.ops = "in_pieces";
  workers.pieces = 2;
  compare_graph(workers, 5);
  compare_graph({.schedule = "1f1b", .ranks = 2, .microbatches = 2, .data_parallel = 2}, 6);
}

TEST_CASE("channels to and from GPUs have no capacity to set") {
  pipeline_settings settings{.schedule = "1f1b", .ranks = 2};
  settings.transport_capacity = 2;
  stretto::test::gpu::reset();
  train::cuda::run_on_gpus(settings, {0});
  CHECK_THROWS_WITH_AS(
      train::pipeline(pipeline_test::tiny(6, true), pipeline_test::text(), settings,
                      pipeline_test::learning()),
      "--transport-capacity 2: only the channels of one process on the host have one",
      train::bad_setting);
}

TEST_CASE("a graph is refused where no step can be recorded, or none is issued to be looked at") {
  const train::config model = pipeline_test::tiny(6, true);
  const auto refused = [&](const pipeline_settings& settings, const char* rule) {
    CHECK_THROWS_WITH_AS(
        train::pipeline(model, pipeline_test::text(), settings, pipeline_test::learning()), rule,
        train::bad_setting);
  };
  pipeline_settings settings{.schedule = "1f1b", .ranks = 2};
  settings.graph = true;
  refused(settings, "--graph with --device host: only a GPU's calls can be recorded");
  stretto::test::gpu::reset();
  train::cuda::run_on_gpus(settings, {0});
  settings.checked = true;
  refused(settings,
          "--graph with --checked: races are looked for in what is issued, and a graph's steps are "
          "not");
}

TEST_CASE("a GPU that is not there is refused by its number") {
  stretto::test::gpu::reset(1, 2);
  pipeline_settings settings;
  CHECK_THROWS_WITH_AS(train::cuda::run_on_gpus(settings, {1, 2}),
                       "--device cuda: there are 2 GPUs, no number 2", train::bad_setting);
}

TEST_CASE("streams have queues enough, or as many as the user says") {
  const auto queues = [] {
    stretto::test::gpu::reset();
    pipeline_settings settings;
    train::cuda::run_on_gpus(settings, {0});
    return std::string(std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"));
  };
  ::unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
  CHECK(queues() == "32");
  ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
  CHECK(queues() == "1");
  ::unsetenv("CUDA_DEVICE_MAX_CONNECTIONS");
}
