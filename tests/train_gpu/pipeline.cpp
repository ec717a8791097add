// Training in a pipeline on a GPU beside the same on the host.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "stretto/executor/cuda/device.hpp"
#include "train_cuda/compare.hpp"
#include "train_cuda/products.hpp"

TEST_CASE("every schedule trains on a GPU as on the host") {
  for (const char* const name :
       {"gpipe", "1f1b", "interleaved", "zb_h1", "zbv_greedy", "dualpipe", "paired_1f1b"})
    train_cuda_test::compare({.schedule = name, .ranks = 2, .microbatches = 4});
  train_cuda_test::compare({.schedule = "seq_1f1b", .ranks = 2, .microbatches = 3, .slices = 2});
  train_cuda_test::compare({.schedule = "seq_1f1b", .ranks = 2, .microbatches = 3, .slices = 3,
                            .slice_lengths = "balanced"});
}

TEST_CASE("a head in pieces trains on a GPU as on the host") {
  train_cuda_test::compare({.schedule = "zbv", .ranks = 2, .microbatches = 4}, 4);
  train_cuda_test::compare(
      {.schedule = "zbv", .ranks = 2, .microbatches = 4, .products = train::precision::bf16}, 4);
}

TEST_CASE("a graph of the step trains to the bits of steps that are issued") {
  const auto compare = [](const train::pipeline_settings& settings) {
    train_cuda_test::compare_graph(settings, train_cuda_test::on_one);
  };
  for (const char* const name : {"1f1b", "zbv_greedy", "dualpipe"})
    compare({.schedule = name, .ranks = 2, .microbatches = 4});
  compare({.schedule = "seq_1f1b", .ranks = 2, .microbatches = 3, .slices = 2});
  compare({.schedule = "1f1b", .ranks = 2, .microbatches = 4, .tensor_parallel = 2,
           .products = train::precision::bf16});
  train::pipeline_settings away{.schedule = "1f1b", .ranks = 2, .microbatches = 4};
  away.offload = *stretto::memory::read_offload("all");
  compare(away);
}

TEST_CASE("workers that share a rank, stashes that run again or wait on the host") {
  train_cuda_test::compare(
      {.schedule = "1f1b", .ranks = 2, .microbatches = 4, .tensor_parallel = 2});
  train_cuda_test::compare({.schedule = "1f1b", .ranks = 2, .microbatches = 2, .data_parallel = 2});
  train::pipeline_settings settings{.schedule = "1f1b", .ranks = 2, .microbatches = 4};
  settings.recompute = *stretto::memory::read_window("all");
  train_cuda_test::compare(settings);
  settings.recompute = {};
  settings.offload = *stretto::memory::read_offload("all");
  train_cuda_test::compare(settings);
}

TEST_CASE("in bf16 it computes what the host does, but for the order of sums") {
  {
    const train::config model = pipeline_test::tiny(6, true);
    const auto stream = stretto::executor::cuda::make_stream(0);
    train::cuda::cuda_math gpu(model, train::precision::bf16);
    gpu.on_stream(stream.get(), 0);
    train_cuda_test::compare_rounding(gpu, stream.get());
    train_cuda_test::compare_products(model, gpu, stream.get());
  }
  constexpr auto bf16 = train::precision::bf16;
  train_cuda_test::compare(
      {.schedule = "zbv_greedy", .ranks = 2, .microbatches = 4, .products = bf16});
  train_cuda_test::compare(
      {.schedule = "seq_1f1b", .ranks = 2, .microbatches = 3, .slices = 2, .products = bf16});
  train_cuda_test::compare({.schedule = "1f1b",
                            .ranks = 2,
                            .microbatches = 2,
                            .tensor_parallel = 2,
                            .products = bf16});
}
