// How sessions end: in peace, by an exception that leaves them, beside a process that never does;
// and what transports leave.
#include <mpi.h>
#include <unistd.h>

#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

#include "job_part.hpp"
#include "stretto/executor/engine.hpp"
#include "stretto/executor/mpi.hpp"
#include "stretto/schedule/interleaved.hpp"

using namespace stretto;
using mpi_test::job_part;
using session = executor::mpi_session;

namespace {

int made_for_transports = 0;
int kept = 0;  // communicators

}  // namespace

// In the place of MPI's, as its interface for profiling allows.
extern "C" int MPI_Comm_idup(MPI_Comm of, MPI_Comm* fresh, MPI_Request* when) {
  ++made_for_transports;
  ++kept;
  return PMPI_Comm_idup(of, fresh, when);
}
extern "C" int MPI_Comm_dup(MPI_Comm of, MPI_Comm* fresh) {
  ++kept;
  return PMPI_Comm_dup(of, fresh);
}
extern "C" int MPI_Comm_free(MPI_Comm* one) {
  --kept;
  return PMPI_Comm_free(one);
}

namespace {

void say(const session& between, const std::string& text) {
  std::cout << "process " << between.process() << ": " << text << std::endl;
}

//! Process 1 leaves its session by an exception between steps; the others are in a step, or at
//! their end.
void leave_by_exception(session& between, bool in_step) {
  const auto made = mpi_test::plans_of(schedule::interleaved{}, between.processes(), 256);
  job_part here(*made, between.process(), 1, make_mpi_transport(between));
  here.engine->step();
  if (between.process() == 1) throw std::runtime_error("nobody has caught this");
  try {
    if (in_step) here.engine->step();
  } catch (const executor::execution_error& caught) {
    say(between, caught.what());
  }
}

//! Process 0 has failed with no message under way; process 1 hears, and never comes to its end.
void never_end(session& between) {
  if (between.process() == 0) return between.abandon("no room on the disk");
  while (between.failure().empty()) std::this_thread::yield();
  while (true) pause();
}

//! Engines that processes destroy in different orders: three are there at once.
void make_many_engines(session& between) {
  const auto plans = mpi_test::plans_of(schedule::interleaved{}, between.processes(), 256);
  const auto make = [&] {
    auto here = std::make_unique<job_part>(*plans, between.process(), 1,
                                           make_mpi_transport(between));
    here->engine->step();
    return here;
  };
  for (int round = 0; round < 5; ++round) {
    auto first = make();
    auto second = make();
    (between.process() == 0 ? first : second).reset();
    const auto third = make();
    third->engine->step();
  }
  say(between, std::to_string(made_for_transports) + " communicators");
}

void run(session& between, const std::string& what) {
  if (what == "exception" || what == "exception-alone")
    leave_by_exception(between, what == "exception");
  else if (what == "engines" || what == "guest")
    make_many_engines(between);
  else if (what == "never")
    never_end(between);
  else if (what != "twice")
    throw std::runtime_error("there is no '" + what + "'");
}

//! Where MPI is the program's, before and after.
int be_guest(int argc, char** argv) {
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  for (int time = 0; time < 3; ++time) {
    session between;
    run(between, "guest");
  }
  MPI_Barrier(MPI_COMM_WORLD);
  std::cout << "kept " << kept << std::endl;
  MPI_Finalize();
  return kept;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "guest") return be_guest(argc, argv);
  try {
    {
      session between;
      run(between, what);
    }
    if (what == "twice") session again;
    return 0;
  } catch (const std::exception& wrong) {
    std::cout << "behind the session: " << wrong.what() << std::endl;
    return 4;
  }
}
