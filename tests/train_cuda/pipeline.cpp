// Training in a pipeline on a simulated GPU, against the same on the host.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "cuda/on_gpu.hpp"
#include "pipeline/pipeline.hpp"
#include "train/pipeline_support.hpp"
#include "train_cuda/simulated_kernels.hpp"

namespace {

using pipeline_test::learning;
using pipeline_test::text;
using train::layer_part;
using train::pipeline_settings;

const train::config model = pipeline_test::tiny(6, true);

//! Of the largest of each tensor.
double relative_difference(const std::vector<float>& one, const std::vector<float>& other) {
  double largest = 0, apart = 0;
  for (std::size_t at = 0; at < one.size(); ++at) {
    largest = std::max(largest, std::abs(static_cast<double>(other[at])));
    const double here = static_cast<double>(one[at]) - static_cast<double>(other[at]);
    apart = std::isfinite(here) ? std::max(apart, std::abs(here)) : INFINITY;
  }
  return apart / largest;
}

void compare(pipeline_settings settings, std::uint64_t seed) {
  CAPTURE(settings.schedule);
  CAPTURE(settings.tensor_parallel);
  CAPTURE(settings.data_parallel);
  settings.poison = true;
  settings.evaluation_microbatches = 4;
  stretto::test::gpu::reset(seed);
  train_cuda_test::define_kernels();
  {
    train::pipeline here(model, text(), settings, learning());
    train::cuda::run_on_gpu(settings, 0);
    train::pipeline there(model, text(), settings, learning());
    CHECK(there.evaluate() == doctest::Approx(here.evaluate()).epsilon(1e-5));
    for (int number = 1; number <= 2; ++number) {
      const train::step_result expected = here.step(), found = there.step();
      CHECK(found.loss == doctest::Approx(expected.loss).epsilon(1e-5));
      CHECK(found.gradient_norm == doctest::Approx(expected.gradient_norm).epsilon(1e-4));
      for (int layer = 0; layer < model.layer_count(); ++layer) {
        CAPTURE(layer);
        CHECK(relative_difference(there.whole(layer, layer_part::gradients),
                                  here.whole(layer, layer_part::gradients)) < 1e-4);
        for (const layer_part part : {layer_part::parameters, layer_part::mean, layer_part::square})
          here.set_whole(layer, part, there.whole(layer, part));  // AdamW magnifies small errors
      }
    }
  }
  CHECK(stretto::test::gpu::complaints().empty());
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
}

TEST_CASE("so do workers that share a rank") {
  compare({.schedule = "1f1b", .ranks = 2, .microbatches = 4, .tensor_parallel = 2}, 6);
  compare({.schedule = "1f1b", .ranks = 2, .microbatches = 2, .data_parallel = 2}, 7);
}

TEST_CASE("stashes that go to the host come back") {
  pipeline_settings settings{.schedule = "1f1b", .ranks = 2, .microbatches = 4};
  settings.offload = *stretto::memory::read_offload("all");
  compare(settings, 8);
}

TEST_CASE("a GPU that is not there is refused by its number") {
  stretto::test::gpu::reset(1, 2);
  pipeline_settings settings;
  CHECK_THROWS_WITH_AS(train::cuda::run_on_gpu(settings, 2),
                       "--device cuda: there are 2 GPUs, no number 2", train::bad_setting);
}
