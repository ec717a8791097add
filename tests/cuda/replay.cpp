// Replays of a step that do not end, on simulated GPUs: which instruction is named.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "cuda/executor_kernels.hpp"
#include "executor/failures.hpp"
#include "executor/pipeline.hpp"
#include "stretto/executor/cuda/step_graph.hpp"
#include "support.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

using std::chrono::milliseconds;

//! Long enough for the steps before the late one, wherever this runs.
constexpr milliseconds late(1000);

//! Three ranks that run forwards and backwards of two micro-batches, one of which never ends in
//! step 3.
struct stuck_run {
  stuck_run() { define_executor_kernels(); }

  executor::execution_error error_with(executor::options with, milliseconds deadline) {
    with.deadline = deadline;
    with.grace = milliseconds(20);
    executor::stage* const stages[] = {&stage, &stage, &stage};
    executor::engine engine(views(plans), stages, std::move(with));
    for (step = 0; step < 3; ++step) engine.step();
    if (before) before();
    const executor::execution_error error = error_of(engine);
    CHECK(error_of(engine).kind() == executor::failure::refused);
    stuck = none;  // and the rest ends
    return error;
  }

  struct waiting_stage final : executor::stage {
    explicit waiting_stage(const stuck_run& on) : my(on) {}
    void run(const executor::context& at) override {
      gpu::enqueue_until(executor::native_stream(at), to_text(at.what).view(),
                         [this, of = at.what] { return my.step < 3 || of != my.stuck; });
    }
    const stuck_run& my;
  } stage{*this};
  std::vector<plan_builder> plans = pipeline_plans(3, 2, 8, layout::separate);
  static constexpr job none{.stage = -1};
  job stuck = none;
  int step = 0;
  std::function<void()> before{};  // step 3
};

executor::options replayed(int gpus = 1) {
  executor::options with = on_gpus(gpus);
  with.graph = executor::make_cuda_graph;
  return with;
}

const std::string nothing_done[] = {"rank 0: 0 of 9 done; first missing: 0 0F0\n",
                                    "rank 1: 0 of 13 done; first missing: 0 1RECV_F0\n",
                                    "rank 2: 0 of 9 done; first missing: 0 2RECV_F0\n"};

}  // namespace

TEST_CASE("where the GPU fails, the instruction is named that did not end, whichever it was") {
  for (const int gpus : {1, 3})
    for (int rank = 0; rank < 3; ++rank)
      for (const job_kind kind : {job_kind::forward, job_kind::backward})
        for (const int microbatch : {0, 1}) {
          gpu::reset(static_cast<std::uint64_t>(rank + 2 * gpus), gpus);
          stuck_run run;
          run.stuck = {rank, microbatch, 0, kind};
          const job stuck = run.stuck;
          CAPTURE(std::string(to_text(stuck).view()));
          run.before = [] { gpu::fail_call(300, cudaErrorIllegalAddress, "cudaEventQuery"); };
          const executor::execution_error error =
              run.error_with(replayed(gpus), std::chrono::minutes(1));
          CHECK(error.kind() == executor::failure::stage);
          CHECK(error.step() == 3);
          CHECK(error.rank() == rank);
          CHECK(error.what_job() == stuck);
          const auto& all = run.plans[static_cast<std::size_t>(rank)].instructions;
          CHECK(all.at(static_cast<std::size_t>(error.instruction())).what == stuck);
          expect_part(error.what(), "step 3, rank " + std::to_string(rank) + ", instruction " +
                                        std::to_string(error.instruction()));
          expect_part(error.what(), ": cudaEventQuery: ");
          expect_part(error.flight_record(), "  started     named by the error\n");
          // All of it was done in the step before.
          if (stuck == job{0, 0, 0, job_kind::forward})
            for (const std::string& each : nothing_done) expect_part(error.flight_record(), each);
        }
}

TEST_CASE("a replay that is late has the error and the flight record of the step when issued") {
  for (const job& stuck : {job{0, 0, 0, job_kind::forward}, job{2, 1, 0, job_kind::forward},
                           job{1, 0, 0, job_kind::backward}}) {
    std::string texts[2], records[2];
    for (const bool graph : {false, true}) {
      gpu::reset(5);
      stuck_run run;
      run.stuck = stuck;
      const executor::execution_error error =
          run.error_with(graph ? replayed() : on_gpus(1), late);
      CHECK(error.kind() == executor::failure::deadline);
      CHECK(error.what_job() == stuck);
      const std::string text = error.what();
      texts[graph] = text.substr(0, text.find("; threads and streams"));
      records[graph] = error.flight_record();
    }
    CHECK(texts[0] == texts[1]);
    CHECK(records[0] == records[1]);
    CHECK_FALSE(records[0].empty());
  }
}

TEST_CASE("a replay that cannot begin is not taken for the one before, which was done") {
  gpu::reset();
  cudaStream_t lent = nullptr;
  REQUIRE(cudaStreamCreateWithPriority(&lent, cudaStreamNonBlocking, 0) == cudaSuccess);
  bool over = false;
  stuck_run run;
  run.before = [&] { gpu::enqueue_until(lent, "somebody else's", [&] { return over; }); };
  executor::options with = replayed();
  with.make_device = [lent](const plan_view& plan, executor::monitor& watch) {
    executor::cuda_settings settings{.patience = milliseconds(0)};
    if (plan.rank == 0) settings.lent = {{0, lent}};
    return executor::make_cuda_device(plan, settings, watch);
  };
  const executor::execution_error error = run.error_with(std::move(with), late);
  for (const std::string& each : nothing_done) expect_part(error.flight_record(), each);
  // It may still come, and write to the memory of ranks whose own streams are idle: an arena each,
  // and where it tells how far it is.
  for (const std::string& each : gpu::complaints()) FAIL_CHECK(each);
  CHECK(gpu::alive().allocations == 3 * 2);
  over = true;
  static_cast<void>(cudaStreamDestroy(lent));
}

TEST_CASE("without graph_progress a replay says that it is late, and that it does not know why") {
  gpu::reset();
  stuck_run run;
  run.stuck = {1, 0, 0, job_kind::forward};
  executor::options with = replayed();
  with.graph_progress = false;
  const executor::execution_error error = run.error_with(std::move(with), late);
  CHECK(error.kind() == executor::failure::deadline);
  CHECK(error.step() == 3);
  CHECK(error.rank() == -1);
  CHECK(error.threads_left() == 1);
  expect_part(error.what(), "of a graph replayed without graph_progress is not known");
  CHECK(error.flight_record().empty());
}
