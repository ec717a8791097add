// What is measured, not how fast it is: calls, pieces, streams, arithmetic and refusals.
#include "stretto/executor/overlap_meter.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>

#include "stretto/executor/error.hpp"

using namespace stretto;

namespace {

TEST_CASE("every variant runs every kernel, in its pieces, on its own stream") {
  std::atomic<int> computed{0};
  std::atomic<int> sent{0};
  std::atomic<bool> wrong{false};
  executor::overlap_kernels kernels;
  kernels.compute = [&](const executor::kernel_call& at) {
    if (at.stream.index != 0 || at.pieces != 3 || at.piece != computed % 3) wrong = true;
    ++computed;
  };
  kernels.communicate = [&](const executor::kernel_call& at) {
    if (at.stream.index != 1 || at.stream.priority >= 0 || at.pieces != 1) wrong = true;
    ++sent;
  };
  const executor::overlap_times times =
      executor::measure_overlap(kernels, {.pieces = 3, .warmups = 1, .rounds = 4});
  CHECK(!wrong);
  CHECK(computed == 5 * 3 * 3);  // alone, serial, both
  CHECK(sent == 5 * 3);
  CHECK(times.compute > 0);
  CHECK(times.communicate > 0);
}

TEST_CASE("one behind the other is one behind the other") {
  std::atomic<int> busy{0};
  std::atomic<int> together{0};
  std::atomic<int> calls{0};
  const auto kernel = [&](const executor::kernel_call&) {
    ++calls;
    if (++busy == 2) ++together;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    --busy;
  };
  const executor::overlap_times times =
      executor::measure_overlap({kernel, kernel}, {.warmups = 0, .rounds = 5});
  CHECK(calls == 5 * 6);
  CHECK(together <= 5);  // only where both are begun at once
  // Sleeps are at least as long as asked for.
  CHECK(times.serial >= 4e6);
  CHECK(times.compute >= 2e6);
}

TEST_CASE("hidden and ceiling are what they say") {
  executor::overlap_times times;
  times.compute = 4, times.communicate = 2, times.both = 5;
  CHECK(times.hidden() == doctest::Approx(0.5));
  CHECK(times.ceiling() == doctest::Approx(1));
  times.compute = 1, times.both = 3;
  CHECK(times.hidden() == doctest::Approx(0));
  CHECK(times.ceiling() == doctest::Approx(0.5));
  // By noise both take less than the longer one alone.
  times.both = 1.9;
  CHECK(times.hidden() == doctest::Approx(times.ceiling()));
  times.compute = 4, times.both = 3.9;
  CHECK(times.hidden() == doctest::Approx(1));
}

TEST_CASE("kernels that are missing, throw or do not end, and settings that mean nothing") {
  const auto nothing = [](const executor::kernel_call&) {};
  CHECK_THROWS_AS(executor::measure_overlap({nothing, {}}), executor::plan_error);
  CHECK_THROWS_AS(executor::measure_overlap({nothing, nothing}, {.pieces = 0}),
                  executor::plan_error);
  CHECK_THROWS_AS(executor::measure_overlap({nothing, nothing}, {.rounds = 0}),
                  executor::plan_error);
  const auto throws = [](const executor::kernel_call&) { throw std::runtime_error("no"); };
  CHECK_THROWS_WITH_AS(executor::measure_overlap({nothing, throws}),
                       "the communication, alone, has failed: no", executor::execution_error);
  CHECK_THROWS_WITH_AS(executor::measure_overlap({throws, nothing}),
                       "the computation, alone, has failed: no", executor::execution_error);
  int pieces = 0;
  const auto throws_late = [&](const executor::kernel_call&) {
    if (++pieces == 3 + 2) throw std::runtime_error("no");
  };
  CHECK_THROWS_WITH_AS(
      executor::measure_overlap({throws_late, nothing}, {.pieces = 3, .warmups = 0, .rounds = 1}),
      "piece 1 of the computation's 3, one behind the other, has failed: no",
      executor::execution_error);
  CHECK_THROWS_WITH_AS(executor::measure_overlap({nothing, nothing}, {.warmups = -1}),
                       "overlap is measured in at least one round, and warmups are not negative",
                       executor::plan_error);
  const auto none = [](const plan_view&, executor::monitor&) {
    return std::unique_ptr<executor::device>();
  };
  CHECK_THROWS_WITH_AS(executor::measure_overlap({nothing, nothing}, {.make_device = none}),
                       "make_device gave none to measure overlap on", executor::plan_error);
  const auto sleeps = [](const executor::kernel_call&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  };
  const executor::overlap_settings impatient{
      .warmups = 0, .rounds = 1, .deadline = std::chrono::milliseconds(20)};
  CHECK_THROWS_WITH_AS(executor::measure_overlap({nothing, sleeps}, impatient),
                       "the communication, alone, has not ended in time",
                       executor::execution_error);
  CHECK_THROWS_WITH_AS(executor::measure_overlap({sleeps, nothing}, impatient),
                       "the computation, alone, has not ended in time", executor::execution_error);
}

}  // namespace
