// What goes wrong in a step ends it with one error that says where, and leaves no thread behind.
#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "../executor/threads.hpp"
#include "pipeline_support.hpp"
#include "stretto/executor/loopback_transport.hpp"
#include "support/faulty_transport.hpp"

using namespace train;
using namespace pipeline_test;
using stretto::executor::execution_error;
using stretto::executor::failure;
using test_support::mishap;

namespace {

//! Runs one step that must fail.
execution_error error_of(pipeline& pipelined) {
  try {
    pipelined.step();
  } catch (const execution_error& error) {
    return error;
  }
  FAIL("the step did not fail");
  throw;  // never reached
}

pipeline_settings small() {
  return {.ranks = 3, .microbatches = 4, .chunks = 2};
}

//! A transport whose `at`-th operation of the rank goes wrong.
pipeline_settings with_fault(mishap what, int rank, std::int64_t at, int capacity) {
  pipeline_settings settings = small();
  settings.make_transport = [=] {
    return test_support::make_faulty_transport(stretto::executor::make_loopback_transport(capacity),
                                               {what, rank, at});
  };
  return settings;
}

//! Messages and collectives that the rank's plan holds.
int operations_of(const pipeline& pipelined, int rank) {
  int count = 0;
  for (const auto& each : pipelined.plan().plans()[config::size(rank)].instructions)
    count += each.act == stretto::action::send || each.act == stretto::action::receive ||
             each.act == stretto::action::all_reduce;
  return count;
}

}  // namespace

TEST_CASE("a gradient that is not finite ends the step before it touches the parameters") {
  const int before = stretto::test::thread_count();
  for (const char* overlap : {"serial", "separate"}) {
    pipeline_settings settings = small();
    settings.overlap = overlap;
    pipeline pipelined(tiny(7, true), text(), settings, learning());
    pipelined.step();
    pipelined.parameters(3)[0] = std::numeric_limits<float>::infinity();
    const std::vector<float> untouched(pipelined.parameters(2).begin(),
                                       pipelined.parameters(2).end());

    const execution_error error = error_of(pipelined);
    CHECK(error.kind() == failure::stage);
    CHECK(error.what_job().kind == stretto::job_kind::optimizer);
    CHECK(error.step() == 1);
    CHECK(error.threads_left() == 0);
    CHECK(std::string(error.what()).find("training has diverged") != std::string::npos);
    CHECK(std::ranges::equal(untouched, pipelined.parameters(2)));
    CHECK(error_of(pipelined).kind() == failure::refused);
  }
  CHECK(stretto::test::settle_to(before));
}

TEST_CASE("a byte outside the vocabulary is named with its rank and job") {
  const corpus bad(std::vector<std::uint8_t>(1000, 99), 8);
  pipeline pipelined(tiny(7, false), bad, small(), learning());
  const execution_error error = error_of(pipelined);
  CHECK(error.kind() == failure::stage);
  CHECK(error.what_job().kind == stretto::job_kind::forward);
  CHECK(std::string(error.what()).find("the byte 99, the vocabulary ends at 60") !=
        std::string::npos);
}

TEST_CASE("a message whose size changes between steps is refused by name") {
  for (const int capacity : {0, 2}) {
    const int operations = operations_of(pipeline(tiny(7, true), text(), small(), learning()), 1);
    // The second operation of rank 1 in the third step.
    pipeline pipelined(tiny(7, true), text(),
                       with_fault(mishap::wrong_size, 1, 2 * operations + 1, capacity), learning());
    pipelined.step();
    pipelined.step();
    const execution_error error = error_of(pipelined);
    CAPTURE(error.what());
    CHECK(error.kind() == failure::transport);
    CHECK(error.step() == 2);
    CHECK(error.threads_left() == 0);
    const std::string words = error.what();
    CHECK(words.find("sizes differ: send ") != std::string::npos);
    CHECK(words.find("of 512 bytes") != std::string::npos);
    CHECK(words.find("of 511 bytes") != std::string::npos);
  }
}

TEST_CASE("what a transport throws, at any operation, is reported once, and all threads end") {
  const int before = stretto::test::thread_count();
  const int operations = operations_of(pipeline(tiny(7, true), text(), small(), learning()), 0);
  CHECK(operations > 10);
  for (int at = 0; at < operations; at += 3) {
    CAPTURE(at);
    pipeline pipelined(tiny(7, true), text(), with_fault(mishap::throw_later, 0, at, 0),
                       learning());
    const execution_error error = error_of(pipelined);
    CHECK(error.kind() == failure::transport);
    CHECK(error.rank() == 0);
    CHECK(error.threads_left() == 0);
  }
  CHECK(stretto::test::settle_to(before));
}

TEST_CASE("a lost message becomes an error at the deadline") {
  const int operations = operations_of(pipeline(tiny(7, true), text(), small(), learning()), 2);
  // The last operation of the step, with nothing behind it that could notice: the collective.
  pipeline_settings settings = with_fault(mishap::drop, 2, operations - 1, 0);
  settings.deadline = std::chrono::milliseconds(300);
  pipeline pipelined(tiny(7, true), text(), settings, learning());
  const execution_error error = error_of(pipelined);
  CHECK(error.kind() == failure::deadline);
  CHECK(error.threads_left() == 0);
}
