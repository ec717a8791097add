// How sessions end, and what the others learn of it: mpi/program/ends.cpp says what they do.
#include <doctest/doctest.h>

#include <string>

#include "start.hpp"

namespace {

using test_support::outcome;

outcome end(int processes, const std::string& what) {
  return mpi_test::start(processes, what, STRETTO_ENDS_PATH);
}

}  // namespace

TEST_CASE("who leaves its session by an exception has failed, and whoever ends all says so") {
  const std::string failure = "process 1 has failed: an exception has ended its session";
  const outcome in_step = end(2, "exception");
  mpi_test::expect_failure(in_step);
  mpi_test::expect(in_step, "process 0: step 1, rank 0, instruction ");
  mpi_test::expect(in_step, failure);
  CHECK_MESSAGE(in_step.err.find("stretto: process 0 ends all processes: messages are under way, "
                                 "which MPI cannot take back; " +
                                 failure + '\n') != std::string::npos,
                in_step.err);
  // With nothing under way MPI is finalised, and the exception arrives.
  const outcome alone = end(2, "exception-alone");
  CHECK_MESSAGE(alone.exit == 4, alone.out, alone.err);
  mpi_test::expect(alone, "behind the session: nobody has caught this\n");
}

TEST_CASE("who never comes to its end after a failure is not waited for") {
  const outcome never = end(2, "never");
  mpi_test::expect_failure(never);
  CHECK_MESSAGE(never.err.find("stretto: process 0 ends all processes: ") != std::string::npos,
                never.err);
}

TEST_CASE("engines use the communicators of earlier ones, whoever has destroyed which first") {
  const outcome many = end(3, "engines");
  CHECK_MESSAGE(many.exit == 0, many.out, many.err);
  for (const char* process : {"process 0", "process 1", "process 2"})
    mpi_test::expect(many, process + std::string(": 3 communicators\n"));
}

TEST_CASE("a session leaves nothing of its own to a program whose MPI it is not") {
  const outcome guest = end(2, "guest");
  CHECK_MESSAGE(guest.exit == 0, guest.out, guest.err);
  mpi_test::expect(guest, "kept 0\n");
}

TEST_CASE("a session behind one that has finalised MPI is refused") {
  const outcome twice = end(1, "twice");
  CHECK_MESSAGE(twice.exit == 4, twice.out, twice.err);
  mpi_test::expect(twice, "behind the session: MPI has been finalised in this process, by an ");
}

TEST_CASE("tags are for what is between two processes, and too few of them are refused") {
  const outcome enough = end(3, "tags");
  const outcome few = end(3, "few-tags");
  for (const char* process : {"process 0: ", "process 1: ", "process 2: "}) {
    mpi_test::expect(enough, process + std::string("has tags enough\n"));
    mpi_test::expect(few, process + std::string("this MPI has too few tags for 2 ranks in one ") +
                              "process and 1 groups\n");
  }
}
