// Faults injected into the transport end the step with an error that names where.
#include <chrono>
#include <string>

#include "failures.hpp"
#include "pipeline.hpp"
#include "stretto/executor/loopback_transport.hpp"
#include "support/faulty_transport.hpp"
#include "threads.hpp"

using namespace stretto;
using namespace stretto::test;
using test_support::mishap;

namespace {

constexpr int ranks = 3;
constexpr int microbatches = 3;

//! The engine of a small pipeline with one fault in its transport.
struct faulty {
  faulty(const test_support::injected_fault& fault, int capacity, executor::issuing issue)
      : plans(pipeline_plans(ranks, microbatches, 8, layout::separate)), stages(ranks) {
    executor::options with;
    with.deadline = waits(fault.what) ? std::chrono::milliseconds(300) : std::chrono::minutes(5);
    with.issue = issue;
    with.wire =
        test_support::make_faulty_transport(executor::make_loopback_transport(capacity), fault);
    engine = std::make_unique<executor::engine>(views(plans), stages.pointers, std::move(with));
  }
  //! Whether only the deadline may find it.
  static bool waits(mishap what) { return what == mishap::drop || what == mishap::duplicate; }

  std::vector<plan_builder> plans;
  sample_stages stages;
  std::unique_ptr<executor::engine> engine;
};

//! Operations that the rank enqueues in a step: receives and sends of its two neighbours.
int operations_of(int rank) {
  return (rank == 0 || rank + 1 == ranks ? 2 : 4) * microbatches;
}

//! The instruction that the rank's k-th operation of a step is.
int instruction_of(const plan_builder& plan, int k) {
  for (std::size_t at = 0; at < plan.instructions.size(); ++at) {
    const action act = plan.instructions[at].act;
    if ((act == action::send || act == action::receive) && k-- == 0) return static_cast<int>(at);
  }
  return -1;
}

}  // namespace

TEST_CASE("what throws is named, wherever it throws") {
  const int before = thread_count();
  for (const mishap what : {mishap::throw_now, mishap::throw_later})
    for (const executor::issuing issue :
         {executor::issuing::caller, executor::issuing::thread_per_rank})
      for (int rank = 0; rank < ranks; ++rank)
        for (int k = 0; k < operations_of(rank); ++k) {
          CAPTURE(rank);
          CAPTURE(k);
          // In the second step.
          faulty run({what, rank, operations_of(rank) + k}, 0, issue);
          run.engine->step();
          const executor::execution_error error = error_of(*run.engine);
          CHECK(error.kind() == executor::failure::transport);
          CHECK(error.step() == 1);
          CHECK(error.rank() == rank);
          CHECK(error.instruction() ==
                instruction_of(run.plans[static_cast<std::size_t>(rank)], k));
          CHECK(error.threads_left() == 0);
          expect_part(error.what(), "injected fault in ");
          CHECK_THROWS_AS(std::rethrow_exception(error.cause()), executor::transport_error);
        }
  CHECK(settle_to(before));
}

TEST_CASE("whatever a message throws is the transport's") {
  for (const executor::issuing issue :
       {executor::issuing::caller, executor::issuing::thread_per_rank}) {
    faulty run({mishap::throw_other, 1, 2}, 0, issue);
    const executor::execution_error error = error_of(*run.engine);
    CHECK(error.kind() == executor::failure::transport);
    CHECK(error.rank() == 1);
    CHECK(error.instruction() == instruction_of(run.plans[1], 2));
    CHECK_THROWS_AS(std::rethrow_exception(error.cause()), std::logic_error);
  }
}

TEST_CASE("a wrong size is found where the message meets, with channel, jobs and sizes") {
  for (const int capacity : {0, 2}) {
    faulty run({mishap::wrong_size, 0, 1}, capacity, executor::issuing::caller);
    const executor::execution_error error = error_of(*run.engine);
    CHECK(error.kind() == executor::failure::transport);
    CHECK(error.rank() == 1);
    CHECK(error.what_job() == job{1, 1, 0, job_kind::receive_forward});
    expect_part(error.what(), "channel 0 -> 1: sizes differ: send 0SEND_F1 of 31 bytes (rank 0, ");
    expect_part(error.what(), "meets receive 1RECV_F1 of 32 bytes (rank 1, instruction ");
  }
  // The same from the receiver's side.
  faulty run({mishap::wrong_size, 1, 0}, 0, executor::issuing::caller);
  expect_part(error_of(*run.engine).what(),
              "0SEND_F0 of 32 bytes (rank 0, instruction 1, step 0) "
              "meets receive 1RECV_F0 of 31 bytes");
}

TEST_CASE("a lost message is found by the next one of its channel") {
  faulty run({mishap::drop, 0, 0}, 0, executor::issuing::caller);
  const executor::execution_error error = error_of(*run.engine);
  CHECK(error.kind() == executor::failure::transport);
  CHECK(error.rank() == 1);
  CHECK(error.what_job() == job{1, 0, 0, job_kind::receive_forward});
  expect_part(error.what(), "channel 0 -> 1: messages differ: send 0SEND_F1");
  expect_part(error.what(), "meets receive 1RECV_F0");
}

TEST_CASE("the last message of a channel, when lost, is named at the deadline") {
  for (const int capacity : {0, 1}) {
    // Rank 0 sends forwards only: its third operation is the channel's last.
    faulty run({mishap::drop, 0, 2}, capacity, executor::issuing::caller);
    const executor::execution_error error = error_of(*run.engine);
    CHECK(error.kind() == executor::failure::deadline);
    CHECK(error.rank() == 1);
    CHECK(error.what_job() == job{1, 2, 0, job_kind::receive_forward});
    expect_part(error.what(), "waits for a message that its partner has finished with");
    expect_part(
        error.flight_record(),
        "1RECV_F2        started     message 2 from rank 0, 32 bytes; meets rank 0's 5, done; "
        "named by the error\n");
  }
}

TEST_CASE("a doubled message is found by the next one of its channel, or at the deadline") {
  faulty early({mishap::duplicate, 0, 0}, 0, executor::issuing::caller);
  const executor::execution_error first = error_of(*early.engine);
  CHECK(first.kind() == executor::failure::transport);
  CHECK(first.what_job() == job{1, 1, 0, job_kind::receive_forward});
  expect_part(first.what(), "send 0SEND_F0");
  faulty late({mishap::duplicate, 0, 2}, 0, executor::issuing::caller);
  CHECK(error_of(*late.engine).kind() == executor::failure::deadline);
  // A channel with room keeps the double until the next step, where it is recognised.
  faulty kept({mishap::duplicate, 0, 2}, 2, executor::issuing::caller);
  kept.engine->step();
  const executor::execution_error next = error_of(*kept.engine);
  CHECK(next.kind() == executor::failure::transport);
  CHECK(next.step() == 1);
  expect_part(next.what(), "send 0SEND_F2 of 32 bytes (rank 0, instruction ");
  expect_part(next.what(), "step 0) meets receive 1RECV_F0 of 32 bytes");
}

TEST_CASE("a delay changes nothing") {
  for (int rank = 0; rank < ranks; ++rank)
    for (int k = 0; k < operations_of(rank); ++k) {
      faulty run({mishap::delay, rank, k, std::chrono::microseconds(500)}, 0,
                 executor::issuing::caller);
      run.engine->step();
      run.engine->step();
      CHECK(run.stages.sums() == expected_sums(ranks, microbatches, 8, 2));
    }
}

TEST_CASE("a collective of the wrong size names its rank") {
  std::vector<plan_builder> plans;
  for (int r = 0; r < 2; ++r) {
    plan_builder plan(r, 2, {"compute"});
    plan.add_group({0, 1}, 4, false);
    plan.all_reduce(0, 0, plan.add_buffer(buffer_role::collective, 0, 0, 16));
    plans.push_back(plan.end());
  }
  sample_stages stages(2);
  executor::options with;
  with.wire = test_support::make_faulty_transport(executor::make_loopback_transport(),
                                                  {mishap::wrong_size, 1, 1});
  executor::engine engine(views(plans), stages.pointers, std::move(with));
  engine.step();
  const executor::execution_error error = error_of(engine);
  CHECK(error.kind() == executor::failure::transport);
  CHECK(error.rank() == 1);
  expect_part(error.what(),
              "group 0: sizes differ: 0ALL_REDUCE0 (rank 1, instruction 0, step 1) "
              "holds 15 bytes, the group sums 16");
}
