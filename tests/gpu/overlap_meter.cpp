// What hides behind what, measured on a GPU of kernels that last a known time at least: how much more is
// the GPU's affair.
#include "stretto/executor/overlap_meter.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "stretto/executor/cuda/device.hpp"
#include "stretto/executor/cuda/error.hpp"
#include "support/kernels.hpp"

using namespace stretto;

TEST_CASE("two kernels are timed alone, one behind the other, and beside each other") {
  const auto lasting = [](std::uint64_t nanoseconds) {
    return [nanoseconds](const executor::kernel_call& at) {
      executor::cuda::check(
          test::launch_delay(nanoseconds, static_cast<cudaStream_t>(at.stream.native)), "a delay");
    };
  };
  constexpr int pieces = 2;
  constexpr double computes = 400'000;  // a piece, in nanoseconds
  constexpr double communicates = 500'000;
  executor::overlap_settings with{.pieces = pieces};
  with.make_device = [](const plan_view& plan, executor::monitor& watch) {
    return executor::make_cuda_device(plan, {.timing = true}, watch);
  };
  const executor::overlap_times seen =
      executor::measure_overlap({lasting(computes), lasting(communicates)}, with);
  // Events and the timer of kernels have steps of their own.
  constexpr double nearly = 0.99;
  CHECK(seen.compute >= nearly * pieces * computes);
  CHECK(seen.communicate >= nearly * communicates);
  CHECK(seen.serial >= nearly * (pieces * computes + communicates));
  CHECK(seen.both >= nearly * std::max(pieces * computes, communicates));
  CHECK(seen.compute_beside >= nearly * pieces * computes);
  CHECK(seen.communicate_beside >= nearly * communicates);
  CHECK(seen.hidden() <= seen.ceiling() + 1e-9);
  MESSAGE("hidden: " << 100 * seen.hidden() << " % of at most " << 100 * seen.ceiling() << " %");
}
