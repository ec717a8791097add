// What hides behind what, measured on a GPU of kernels that last a known time at least: how much
// more is the GPU's affair.
#include "stretto/executor/overlap_meter.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>

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
  constexpr std::uint64_t computes = 400'000;  // a piece, in nanoseconds
  constexpr std::uint64_t communicates = 500'000;
  executor::overlap_settings with{.pieces = pieces};
  with.make_device = [](const plan_view& plan, executor::monitor& watch) {
    return executor::make_cuda_device(plan, {.timing = true}, watch);
  };
  const executor::overlap_times seen =
      executor::measure_overlap({lasting(computes), lasting(communicates)}, with);
  // Events and the timer of kernels have steps of their own.
  const auto least = [](std::uint64_t nanoseconds) {
    return 0.99 * static_cast<double>(nanoseconds);
  };
  CHECK(seen.compute >= least(pieces * computes));
  CHECK(seen.communicate >= least(communicates));
  CHECK(seen.serial >= least(pieces * computes + communicates));
  CHECK(seen.both >= least(std::max(pieces * computes, communicates)));
  CHECK(seen.compute_beside >= least(pieces * computes));
  CHECK(seen.communicate_beside >= least(communicates));
  CHECK(seen.hidden() <= seen.ceiling() + 1e-9);
  MESSAGE("hidden: " << 100 * seen.hidden() << " % of at most " << 100 * seen.ceiling() << " %");
}
