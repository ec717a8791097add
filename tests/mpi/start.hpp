#pragma once

#include <doctest/doctest.h>

#include <string>

#include "support/run_program.hpp"

// STRETTO_MPIRUN: the command that starts as many processes as the number that follows.
// STRETTO_MPIRUN_ON: the same, which goes on when a process dies; empty: there is none.
// STRETTO_RANKS_PATH, STRETTO_ENDS_PATH: what it is to start, of mpi/program.
// STRETTO_TRAIN_PATH: and the trainer, where it is built.

namespace mpi_test {

using test_support::outcome;

inline outcome start(int processes, const std::string& what,
                     const std::string& program = STRETTO_RANKS_PATH) {
  // A launcher that does not end is ended, and with it the test.
  return test_support::run("timeout", "-k 5 100 " + std::string(STRETTO_MPIRUN) + " " +
                                          std::to_string(processes) + " \"" + program + "\" " +
                                          what);
}

inline void expect(const outcome& of, const std::string& part) {
  CHECK_MESSAGE(of.out.find(part) != std::string::npos, of.out, of.err, " lacks \"", part, "\"");
}

//! It has failed, and not because the time was over.
inline void expect_failure(const outcome& of) {
  CHECK_MESSAGE(of.exit != 0, of.out);
  CHECK_MESSAGE(of.exit != 124, of.out);
}

}  // namespace mpi_test
