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
int kept = 0;      // communicators
int most_tag = 0;  // 0: as MPI has it

}  // namespace

// In the place of MPI's, as its interface for profiling allows.
extern "C" int MPI_Comm_idup(MPI_Comm of, MPI_Comm* fresh, MPI_Request* when) {
  ++made_for_transports;
  ++kept;
  return PMPI_Comm_idup(of, fresh, when);
}
extern "C" int MPI_Comm_get_attr(MPI_Comm of, int key, void* value, int* found) {
  if (key != MPI_TAG_UB || most_tag == 0) return PMPI_Comm_get_attr(of, key, value, found);
  *static_cast<int**>(value) = &most_tag;
  *found = 1;
  return MPI_SUCCESS;
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
  // Whole, whatever others print.
  std::cout << "process " + std::to_string(between.process()) + ": " + text + "\n" << std::flush;
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
    auto here =
        std::make_unique<job_part>(*plans, between.process(), 1, make_mpi_transport(between));
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

//! Two ranks in each process, of an MPI with so many tags only: of one group and the channels each
//! pair of processes has eight.
void take_tags(session& between, int tags) {
  most_tag = tags;
  const auto plans = mpi_test::plans_of(schedule::interleaved{}, 2 * between.processes(), 256);
  try {
    job_part here(*plans, 2 * between.process(), 2, make_mpi_transport(between));
    here.engine->step();
    say(between, "has tags enough");
  } catch (const executor::plan_error& refused) {
    say(between, refused.what());
  }
}

void run(session& between, const std::string& what) {
  if (what == "exception" || what == "exception-alone")
    leave_by_exception(between, what == "exception");
  else if (what == "engines" || what == "guest")
    make_many_engines(between);
  else if (what == "tags" || what == "few-tags")
    take_tags(between, what == "tags" ? 8 : 7);
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
  std::cout << "kept " + std::to_string(kept) + "\n" << std::flush;
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
