// Training in a pipeline on several GPUs of one process beside the same on the host: by copies, and
// by NCCL.
#include <doctest/doctest.h>

#include "cuda/over_nccl.hpp"
#include "stretto/executor/bootstrap.hpp"
#include "train_cuda/compare.hpp"

namespace {

//! Two workers, of two ranks or of one.
template <class Compare>
void on_two(Compare compare) {
  for (const char* const name : {"1f1b", "zbv"})
    for (const int shards : {1, 2})
      compare(train::pipeline_settings{
          .schedule = name, .ranks = 2 / shards, .microbatches = 4, .tensor_parallel = shards});
}

}  // namespace

TEST_CASE("by copies they train as the host does") {
  on_two([](const train::pipeline_settings& settings) {
    train_cuda_test::compare(
        settings, [](train::pipeline_settings& to) { train::cuda::run_on_gpus(to, {0, 1}); });
  });
}

#if __has_include("stretto/executor/cuda/nccl_transport.hpp")

TEST_CASE("so they do by NCCL") {
  on_two([](const train::pipeline_settings& settings) {
    const auto alone = stretto::executor::make_local_bootstraps(1);
    train_cuda_test::compare(settings, [&](train::pipeline_settings& to) {
      to.between = alone[0].get();
      train::cuda::run_over_nccl(to, {}, 0);
    });
  });
}

#endif
