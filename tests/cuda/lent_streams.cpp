// Streams of the caller's in the place of a plan's: whose work on them is whose.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "driver/simulated_gpu.hpp"
#include "executor/failures.hpp"
#include "executor/pipeline.hpp"
#include "executor_kernels.hpp"
#include "one_rank.hpp"
#include "stretto/executor/cuda/device.hpp"
#include "stretto/executor/cuda/loopback_transport.hpp"
#include "stretto/executor/cuda/step_graph.hpp"
#include "support.hpp"
#include "support/captured_errors.hpp"

using namespace stretto;
using namespace stretto::test;

TEST_CASE("a lent stream takes the place of one, and is the lender's to give back") {
  gpu::reset();
  cudaStream_t mine = nullptr;
  REQUIRE(cudaStreamCreateWithPriority(&mine, cudaStreamNonBlocking, 0) == cudaSuccess);
  {
    one_rank run;
    executor::engine engine({&run.view, 1}, run.stages, on_gpu({.lent = {{0, mine}}}));
    engine.step();
    CHECK(gpu::alive().streams == 5);
    CHECK(std::vector<float>{run.inner.sum} == expected_sums(1, 3, 5, 1));
    const auto refused = [&](const executor::cuda_settings& with, const char* words) {
      expect_part(refusal_of([&] {
                    executor::engine(std::span(&run.view, 1), run.stages, on_gpu(with));
                  }),
                  words);
    };
    refused({.lent = {{5, mine}}}, "stream 5, which is lent, is none of the 5 of rank 0");
    refused({.lent = {{1, nullptr}}}, "stream 1, which is lent, is the default stream");
    refused({.lent = {{1, cudaStreamLegacy}}}, "stream 1, which is lent, is the default stream");
    refused({.lent = {{1, cudaStreamPerThread}}},
            "stream 1, which is lent, is cudaStreamPerThread, which is another stream to each "
            "thread that uses it, and several threads use a lent one");
    refused({.lent = {{1, mine}, {1, mine}}}, "stream 1, which is lent, is lent twice");
    refused({.lent = {{1, mine}, {2, mine}}},
            "stream 2, which is lent, is another of the plan's, too");
    refused({.device = 7}, "rank 0 is to run on GPU 7, and this process has 1, counted from 0");
    refused({.device = -1}, "rank 0 is to run on GPU -1, and this process has 1");
    refused({.patience = std::chrono::seconds(-1)}, "patience cannot be negative");
    static std::byte bytes[1 << 16];
    refused({.arena = {[](std::size_t) -> void* { return bytes + 1; }, [](void*) {}}},
            "the arena's memory does not begin at a multiple of 64 bytes");
  }
  CHECK(gpu::alive().streams == 1);
  cudaStreamDestroy(mine);
}

TEST_CASE("what its lender does on a stream behind a step is not waited for") {
  define_executor_kernels();
  for (const bool graph : {false, true}) {
    gpu::reset();
    cudaStream_t mine = nullptr;
    REQUIRE(cudaStreamCreateWithPriority(&mine, cudaStreamNonBlocking, 0) == cudaSuccess);
    bool over = false;
    const captured_errors errors;
    {
      one_rank run;
      executor::options with = on_gpu({.lent = {{0, mine}}});
      if (graph) with.graph = executor::make_cuda_graph;
      with.wire = executor::make_cuda_loopback_transport();
      executor::engine engine({&run.view, 1}, run.stages, std::move(with));
      for (int step = 0; step < 3; ++step) engine.step();
      gpu::enqueue_until(mine, "the lender's", [&] { return over; });
    }
    CHECK(errors.text().empty());
    CHECK(gpu::alive().allocations == 0);
    over = true;
    cudaStreamDestroy(mine);
  }
}

TEST_CASE("an arena is zeroed when it is there, even where all streams are lent and at work") {
  gpu::reset();
  cudaStream_t mine[6];
  bool over = false;
  for (cudaStream_t& each : mine) {
    REQUIRE(cudaStreamCreateWithPriority(&each, cudaStreamNonBlocking, 0) == cudaSuccess);
    gpu::enqueue_until(each, "the lender's", [&] { return over; });
  }
  {
    one_rank run;
    executor::cuda_settings settings;
    settings.timing = true;
    for (int index = 0; index < static_cast<int>(run.view.streams.size()); ++index)
      settings.lent.push_back({index, mine[index]});
    const executor::engine engine({&run.view, 1}, run.stages, on_gpu(settings));
    const std::span<const std::byte> arena = engine.arena(0);
    CHECK(std::ranges::count(arena, std::byte{0}) == std::ssize(arena));
    CHECK(!arena.empty());
  }
  over = true;
  for (cudaStream_t each : mine) cudaStreamDestroy(each);
  CHECK(gpu::alive() == gpu::handles{});
}

TEST_CASE("what a failed step has left on a lent stream is not waited for, nor its memory freed") {
  gpu::reset();
  cudaStream_t mine = nullptr;
  REQUIRE(cudaStreamCreateWithPriority(&mine, cudaStreamNonBlocking, 0) == cudaSuccess);
  bool over = false;
  {
    one_rank run;
    struct stuck_stage final : executor::stage {
      void run(const executor::context& at) override {
        if (at.step == 1)
          gpu::enqueue_until(executor::native_stream(at), "stuck", [this] { return *over; });
      }
      bool* over = nullptr;
    } stage;
    stage.over = &over;
    executor::stage* const stages[] = {&stage};
    executor::options with =
        on_gpu({.lent = {{0, mine}}, .patience = std::chrono::milliseconds(20)});
    with.deadline = std::chrono::milliseconds(500);
    with.grace = std::chrono::milliseconds(20);
    executor::engine engine({&run.view, 1}, stages, std::move(with));
    engine.step();
    const executor::execution_error error = error_of(engine);
    CHECK(error.kind() == executor::failure::deadline);
    CHECK(error.threads_left() >= 1);
  }
  CHECK(gpu::complaints().empty());
  CHECK(gpu::alive().allocations == 1);
  over = true;
  cudaStreamDestroy(mine);
}
