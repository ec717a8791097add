// The ranks of one pipeline in several processes: mpi/program/ranks.cpp says what they do.
#include <doctest/doctest.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "support/run_program.hpp"

// STRETTO_MPIRUN: the command that starts as many processes as the number that follows.
// STRETTO_RANKS_PATH: what it is to start.

namespace {

using test_support::outcome;

outcome start(int processes, const std::string& what) {
  // A launcher that does not end is ended, and with it the test.
  return test_support::run("timeout", "-k 5 100 " + std::string(STRETTO_MPIRUN) + " " +
                                          std::to_string(processes) +
                                          " \"" STRETTO_RANKS_PATH "\" " + what);
}

void expect(const outcome& of, const std::string& part) {
  CHECK_MESSAGE(of.out.find(part) != std::string::npos, of.out, of.err, " lacks \"", part, "\"");
}

//! It has failed, and not because the time was over.
void expect_failure(const outcome& of) {
  CHECK_MESSAGE(of.exit != 0, of.out);
  CHECK_MESSAGE(of.exit != 124, of.out);
}

}  // namespace

TEST_CASE("processes compute to the bit what one process computes") {
  for (const int processes : {2, 4}) {
    const outcome ended = start(processes, "equal");
    CHECK_MESSAGE(ended.exit == 0, ended.out, ended.err);
    for (int process = 0; process < processes; ++process)
      for (const char* name : {"interleaved on ", "zbv on ", "dualpipe on "})
        expect(ended, name + std::to_string(name[0] == 'd' ? 2 * processes : processes) +
                          " ranks: process " + std::to_string(process) + " equal");
  }
}

TEST_CASE("plans that differ are refused before the first step, by every process") {
  const outcome sizes = start(2, "sizes");
  expect_failure(sizes);
  for (const char* process : {"process 0", "process 1"})
    expect(sizes,
           process + std::string(" refuses: rank 1, in process 1, runs another schedule than "
                                 "rank 0: their digests differ; first in channel 0 -> 1: "));
  expect(sizes, "both message 0 of the channel: 256 bytes are sent, 128 received");
  const outcome schedules = start(2, "schedules");
  expect_failure(schedules);
  expect(schedules, "process 0 refuses: rank 1, in process 1, runs another schedule than rank 0");
}

TEST_CASE("a process that stops, dies or fails ends all of them, with a reason") {
  const outcome stopped = start(2, "stop");
  expect_failure(stopped);
  expect(stopped, "process 0: step 1 has not ended in time: rank 0, instruction ");
  expect(stopped, "waits for rank 1, in another process");
  expect(stopped, "; threads left 0");

  expect_failure(start(2, "die"));

  const outcome thrown = start(2, "throw");
  expect_failure(thrown);
  expect(thrown, "process 1: step 1, rank 1, instruction ");
  expect(thrown, "no more of this; threads left 0");
}
