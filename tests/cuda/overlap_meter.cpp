// What hides behind what, measured on a simulated GPU: kernels that are launched, not run, by a
// call.
#include "stretto/executor/overlap_meter.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <stdexcept>
#include <string>

#include "driver/simulated_gpu.hpp"
#include "stretto/executor/cuda/device.hpp"
#include "stretto/executor/error.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

executor::overlap_settings on_gpu(bool timing, int pieces) {
  executor::overlap_settings with{.pieces = pieces, .warmups = 1, .rounds = 4};
  with.make_device = [timing](const plan_view& plan, executor::monitor& watch) {
    return executor::make_cuda_device(plan, {.timing = timing}, watch);
  };
  return with;
}

cudaStream_t native(const executor::kernel_call& at) {
  return static_cast<cudaStream_t>(at.stream.native);
}

}  // namespace

TEST_CASE("kernels are launched on two streams, and timed where they run") {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    gpu::reset(seed);
    gpu::keep_own_time();
    int computed = 0;
    int sent = 0;
    bool computing = false;
    executor::overlap_kernels kernels;
    kernels.compute = [&](const executor::kernel_call& at) {
      gpu::enqueue_for(native(at), "matmul", 100'000);
      gpu::enqueue(native(at), "its end", [&computed, &computing, last = at.piece == 2] {
        ++computed;
        computing = !last;
      });
    };
    kernels.communicate = [&](const executor::kernel_call& at) {
      gpu::enqueue_for(native(at), "message", 200'000);
      gpu::enqueue(native(at), "its end", [&sent] { ++sent; });
    };
    const executor::overlap_times times = executor::measure_overlap(kernels, on_gpu(true, 3));
    CHECK(computed == 5 * 3 * 3);
    CHECK(sent == 5 * 3);
    CHECK_FALSE(computing);
    // In nanoseconds, and some more until somebody looks.
    CHECK(times.compute == doctest::Approx(300'000).epsilon(0.1));
    CHECK(times.communicate == doctest::Approx(200'000).epsilon(0.1));
    CHECK(times.serial == doctest::Approx(500'000).epsilon(0.1));
    CHECK(times.both == doctest::Approx(300'000).epsilon(0.1));
    CHECK(gpu::alive() == gpu::handles{});
    for (const std::string& each : gpu::complaints()) FAIL_CHECK(each);
  }
}

TEST_CASE("a launch that throws, a kernel that does not end, and a device without times") {
  gpu::reset();
  const auto nothing = [](const executor::kernel_call&) {};
  const auto throws = [](const executor::kernel_call&) { throw std::runtime_error("no"); };
  CHECK_THROWS_AS(executor::measure_overlap({nothing, throws}, on_gpu(true, 1)),
                  executor::execution_error);
  CHECK_THROWS_AS(executor::measure_overlap({nothing, nothing}, on_gpu(false, 1)),
                  executor::plan_error);
  // Of which nobody sees the end in time, because there is none to look.
  int looks = 0;
  const auto lasts = [&looks](const executor::kernel_call& at) {
    gpu::enqueue_until(native(at), "a long kernel", [&looks] { return ++looks > 3; });
  };
  executor::overlap_settings impatient = on_gpu(true, 1);
  impatient.deadline = std::chrono::nanoseconds(1);
  CHECK_THROWS_AS(executor::measure_overlap({lasts, nothing}, impatient),
                  executor::execution_error);
  CHECK(looks > 3);
  CHECK(gpu::alive() == gpu::handles{});
  CHECK(gpu::complaints().empty());
}
