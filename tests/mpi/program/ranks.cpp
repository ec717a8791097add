// The ranks of a pipeline, dealt to the processes that mpirun has started: what they compute must
// be what they compute in one process, and whatever goes wrong must end them all, with a reason.
#include <mpi.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "job_part.hpp"
#include "stretto/executor/engine.hpp"
#include "stretto/executor/mpi.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/plan/shared.hpp"
#include "stretto/schedule/dualpipe.hpp"
#include "stretto/schedule/gpipe.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "stretto/schedule/zbv.hpp"
#include "support/faulty_transport.hpp"

using namespace stretto;
using mpi_test::job_part;
using mpi_test::mixer;
using mpi_test::plans_of;

namespace {

using session = executor::mpi_session;

//! The steps of one plan, over all processes and in this one alone: the same bits.
bool same(session& between, std::span<const plan_view> made, int ranks) {
  const int each = ranks / between.processes();
  const int first = between.process() * each;
  job_part here(made, first, each, make_mpi_transport(between));
  job_part all(made, 0, ranks, nullptr);
  for (int step = 0; step < 3; ++step) {
    here.engine->step();
    all.engine->step();
  }
  bool good = true;
  for (int at = 0; at < each; ++at)
    good = good && here.stages[static_cast<std::size_t>(at)]->trail ==
                       all.stages[static_cast<std::size_t>(first + at)]->trail;
  return good;
}

int equal(session& between) {
  const int processes = between.processes();
  int wrong = 0;
  const auto check = [&](const char* name, const auto& made, int ranks) {
    const bool good = same(between, made->plans(), ranks);
    if (!good) ++wrong;
    std::printf("%s on %d ranks: process %d %s\n", name, ranks, between.process(),
                good ? "equal" : "DIFFERS");
  };
  check("interleaved", plans_of(schedule::interleaved{}, processes, 4000, 2), processes);
  check("zbv", plans_of(schedule::zbv{}, processes, 64, 2), processes);
  // Larger than what MPI sends at once; two ranks in each process.
  check("dualpipe", plans_of(schedule::dualpipe{}, 2 * processes, 200000, 1, 4 * processes),
        2 * processes);
  // Replicas in other processes, which gather each stage's weights and deal its gradients' sum; no
  // part is a line of memory.
  plan_request sharded;
  sharded.stages = {{.output = 128, .stash = 256, .gradients = 1008, .weights = 4 * 90004}};
  sharded.data_parallel = true;
  sharded.gathered = 1;
  const job_table costs(processes / 2, 2);
  const planned base(schedule::interleaved{},
                     {.ranks = processes / 2, .microbatches = 4, .chunks = 2}, costs.view(),
                     overlap::separate{}, sharded);
  if (!base.answer()) throw std::logic_error("the plan was refused");
  check("sharded", std::make_unique<const shared>(base.plans(), 1, 4), 2 * processes);
  return wrong;
}

//! One rank in each process, until something goes wrong.
int fail(session& between, const std::unique_ptr<const planned>& made,
         std::chrono::nanoseconds deadline, const std::function<void()>& in_process_1,
         std::unique_ptr<executor::transport> wire = {}, int steps = 4) {
  if (!wire) wire = make_mpi_transport(between);
  job_part here(*made, between.process(), 1, std::move(wire), deadline);
  if (between.process() == 1)
    here.stages[0]->before = [&](const executor::context& at) {
      if (at.step == 1 && at.what.microbatch == 2) in_process_1();
    };
  try {
    for (int step = 0; step < steps; ++step) here.engine->step();
  } catch (const executor::execution_error& caught) {
    std::cout << "process " << between.process() << ": " << caught.what() << "; threads left "
              << caught.threads_left() << std::endl;
    return 5;  // the session waits for the others to have told theirs
  }
  return 0;
}

int run(session& between, const std::string& what) {
  const int ranks = between.processes();
  const bool odd = between.process() == 1;
  const auto plans = [&](std::int64_t bytes) {
    return plans_of(schedule::interleaved{}, ranks, bytes);
  };
  const auto soon = std::chrono::seconds(3);  // a step takes milliseconds
  const auto later = std::chrono::minutes(1);
  if (what == "equal") return equal(between);
  if (what == "sizes") return fail(between, plans(odd ? 128 : 256), soon, [] {});
  if (what == "nobody") {  // one cannot make an engine
    const auto made = plans(256);
    const plan_view plan = made->plans()[static_cast<std::size_t>(between.process())];
    mixer here(between.process());
    executor::stage* const stages[] = {odd ? nullptr : &here};
    executor::options with;
    with.wire = make_mpi_transport(between, std::chrono::minutes(2));
    executor::engine({&plan, 1}, stages, std::move(with));
    return 0;
  }
  if (what == "schedules")
    return fail(between, odd ? plans_of(schedule::gpipe{}, ranks, 256) : plans(256), soon, [] {});
  if (what == "stop") return fail(between, plans(256), soon, [] { std::raise(SIGSTOP); });
  if (what == "die") return fail(between, plans(256), later, [] { std::raise(SIGKILL); });
  if (what == "throw")
    return fail(between, plans(256), later, [] { throw std::runtime_error("no more of this"); });
  if (what == "leave")
    return fail(
        between, plans(256), later, [] {}, {}, odd ? 2 : 4);
  if (what == "shorter")
    return fail(
        between, plans(256), later, [] {},
        test_support::make_faulty_transport(make_mpi_transport(between),
                                            {test_support::mishap::wrong_size, 0, 1}));
  // Between steps: what others were to take or to give.
  const auto minute = std::chrono::steady_clock::now() + later;
  if (what == "gather" && between.process() == 0) {
    between.abandon("no room on the disk");
    return 5;
  }
  if (what == "gone" && odd) return 0;
  if (what == "gather" || what == "gone" || what == "names") {
    try {
      if (what == "names") between.barrier(std::string_view("one\0more", 8), minute);
      if (what == "gather") static_cast<void>(between.gather("layer 3", "a part", minute));
      between.barrier("plans", minute);
    } catch (const executor::bootstrap_error& wrong) {
      std::cout << "process " << between.process() << ": " << wrong.what() << std::endl;
      return 5;
    }
    return 0;
  }
  std::cerr << "there is no '" << what << "'\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "single") {
    int level = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &level);
    try {
      session refused;
    } catch (const executor::bootstrap_error& wrong) {
      std::cout << wrong.what() << std::endl;
    }
    MPI_Finalize();
    return 6;
  }
  session between;
  try {
    return run(between, what);
  } catch (const executor::plan_error& refused) {
    std::cout << "process " << between.process() << " refuses: " << refused.what() << std::endl;
    return 3;
  } catch (const std::exception& wrong) {
    std::cout << "process " << between.process() << ": " << wrong.what() << std::endl;
    between.abort(4);
  }
}
