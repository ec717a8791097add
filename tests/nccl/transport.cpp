// Messages and sums by NCCL, between simulated GPUs and with a simulated NCCL: which communicators
// there are, in which order they are used, and what becomes of errors.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cuda/driver/simulated_gpu.hpp"
#include "cuda/support.hpp"
#include "driver/simulated_nccl.hpp"
#include "executor/failures.hpp"
#include "nccl/run.hpp"
#include "stretto/executor/bootstrap.hpp"
#include "stretto/executor/callbacks.hpp"
#include "stretto/executor/cuda/error.hpp"
#include "stretto/executor/cuda/nccl_transport.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

thread_local int sleeps = 0;

}  // namespace

//! In the place of the C library's.
extern "C" int nanosleep(const timespec* length, timespec* left) {
  ++sleeps;
  return clock_nanosleep(CLOCK_MONOTONIC, 0, length, left);
}

namespace {

using std::chrono::milliseconds;

using run = nccl_run;

//! Of one process, which hears of another's failure, and what this one tells.
struct watching final : executor::bootstrap {
  int process() const override { return 0; }
  int processes() const override { return 1; }
  std::vector<std::string> all_gather(std::string_view, std::string_view mine,
                                      executor::time_point) override {
    return {std::string(mine)};
  }
  std::string failure() noexcept override { return speaks ? text : ""; }
  void abandon(std::string_view why) noexcept override { told.emplace_back(why); }
  std::atomic<bool> speaks{true};
  std::string text{};
  std::vector<std::string> told{};
};

}  // namespace

TEST_CASE("pipelines have the bits of the plain computation, whatever order streams run in") {
  for (const int ranks : {2, 4})
    for (const layout how : {layout::serial, layout::separate})
      for (const std::uint64_t seed : {1U, 2U, 3U}) {
        run of(ranks, how, {}, std::chrono::minutes(1), seed);
        of.start();
        for (int step = 0; step < 3; ++step) of.engine->step();
        CHECK(of.inner.sums() == expected_sums(ranks, 4, 7, 3));
        of.engine.reset();
        of.check_left();
        CHECK(nccl::aborted() == 0);
      }
}

TEST_CASE("steps end whatever their streams' queues hold, though calls wait for room") {
  for (const std::size_t depth : {1U, 2U, 5U})
    for (const layout how : {layout::serial, layout::separate}) {
      CAPTURE(depth);
      run of(3, how);
      gpu::limit_queues(depth);
      of.start();
      for (int step = 0; step < 3; ++step) of.engine->step();
      CHECK(of.inner.sums() == expected_sums(3, 4, 7, 3));
      of.engine.reset();
      of.check_left();
    }
}

TEST_CASE("who is held up by a full queue is told that the time is up, or that a process is lost") {
  watching others;
  others.speaks = false;
  for (const bool lost : {false, true}) {
    CAPTURE(lost);
    run of(2, layout::separate, {}, lost ? std::chrono::minutes(1) : std::chrono::seconds(2));
    others.text = lost ? "process 1 has failed: for a reason" : "";
    of.with.wire = executor::make_nccl_transport(others, {.kernels_loaded = true});
    of.start();
    of.engine->step();
    // A send, which does not end, its record, one more send, and no room for that one's record.
    gpu::limit_queues(4);
    nccl::stall("pp:0->1", false);
    others.speaks = true;
    const executor::execution_error error = error_of(*of.engine);
    others.speaks = false;
    CHECK(error.kind() == (lost ? executor::failure::transport : executor::failure::deadline));
    expect_part(error.what(), lost
                                  ? "process 1 has failed: for a reason"
                                  : "the step has not ended in time, and who issues it is held up");
    expect_part(error.what(), "; what was issued then is rank 0, instruction ");
    CHECK(error.threads_left() == 0);
    of.engine.reset();
    of.check_left();
  }
}

TEST_CASE(
    "every direction and every group has a communicator of its own, used before the first step") {
  run of(3, layout::separate, {.message_blocks = 6, .sum_blocks = 9, .cluster = 2});
  of.start();
  std::multiset<std::string> names;
  for (const nccl::made& each : nccl::communicators()) {
    names.insert(each.name);
    CHECK(each.blocking == 0);
    CHECK(each.share == 0);
    CHECK(each.cluster == 2);
    const bool group = each.name[0] == 'g';
    CHECK(each.blocks == (group ? 9 : 6));
    CHECK(each.size == (group ? 3 : 2));
    // A channel's sender is number 0; each rank is on its own GPU.
    const int holder = group ? each.rank : each.rank == 0 ? each.name[3] - '0' : each.name[6] - '0';
    CHECK(each.device == holder);
  }
  CHECK(names == std::multiset<std::string>{"pp:0->1", "pp:0->1", "pp:1->0", "pp:1->0", "pp:1->2",
                                            "pp:1->2", "pp:2->1", "pp:2->1", "group:0", "group:0",
                                            "group:0", "group:1", "group:1", "group:1"});
  CHECK(called("ncclSend").size() == 4);
  CHECK(called("ncclRecv").size() == 4);
  CHECK(called("ncclAllReduce").size() == 6);

  // A step makes nothing and waits for nothing.
  const std::size_t before = gpu::calls().size();
  of.engine->step();
  const std::set<std::string> allowed{"cudaSetDevice",
                                      "cudaGetLastError",
                                      "kernel",
                                      "cudaEventRecord",
                                      "cudaStreamWaitEvent",
                                      "cudaMemsetAsync",
                                      "cudaEventQuery",
                                      "ncclSend",
                                      "ncclRecv",
                                      "ncclAllReduce",
                                      "ncclCommGetAsyncError"};
  for (std::size_t at = before; at < gpu::calls().size(); ++at)
    CHECK_MESSAGE(allowed.count(gpu::calls()[at].name) == 1, gpu::to_text(gpu::calls()[at]));
}

TEST_CASE("arenas are registered with every communicator, and with none at the end") {
  run of(3, layout::separate, {.registered = true});
  of.use_arenas(executor::nccl_memory());
  of.start();
  for (int step = 0; step < 2; ++step) of.engine->step();
  CHECK(of.inner.sums() == expected_sums(3, 4, 7, 2));
  CHECK(nccl::registered() == 14);
  of.engine.reset();
  CHECK(nccl::registered() == 0);
  of.check_left();

  // Of a step that fails, too, no memory is given back that is known to one.
  run broken(3, layout::separate, {.registered = true});
  broken.use_arenas(executor::nccl_memory());
  broken.start();
  nccl::fail_async("pp:1->2", ncclRemoteError);
  expect_part(error_of(*broken.engine).what(), "a remote process has gone");
  broken.engine.reset();
  broken.check_left();

  run other(2, layout::serial, {.registered = true});
  expect_part(refusal_of([&] { other.start(); }), "ncclCommRegister: some NCCL error");
  other.check_left();
  run torn(2);
  torn.use_arenas({.allocate = executor::nccl_memory().allocate});
  expect_part(refusal_of([&] { torn.start(); }), "must take it back");
}

TEST_CASE("of a registered arena the other side is told before the first step, by a large one") {
  gpu::reset(1, 2);
  nccl::reset();
  {
    std::vector<plan_builder> plans;
    for (int r = 0; r < 2; ++r) {
      plan_builder plan(r, 2, {"compute"});
      // The second is the largest: what NCCL sends by its protocol for small ones tells nothing.
      for (const int each : {0, 1, 2}) {
        const int moved = plan.add_buffer(buffer_role::output, r, each, each == 1 ? 1 << 20 : 64);
        r == 0 ? plan.send({0, each, 0, job_kind::send_forward}, 0, 1, moved)
               : plan.receive({1, each, 0, job_kind::receive_forward}, 0, 0, moved);
      }
      plans.push_back(plan.end());
    }
    const auto alone = executor::make_local_bootstraps(1);
    sample_stages inner(2);
    enqueueing_stages stages(inner.pointers);
    executor::options with;
    with.make_device = [](const plan_view& plan, executor::monitor& watch) {
      return executor::make_cuda_device(
          plan, {.device = plan.rank, .arena = executor::nccl_memory()}, watch);
    };
    with.wire =
        executor::make_nccl_transport(*alone[0], {.registered = true, .kernels_loaded = true});
    executor::engine engine(views(plans), stages.pointers, std::move(with));
    for (int step = 0; step < 2; ++step) engine.step();
    expect_part(called("ncclSend").front(), "pp:0->1, 1048576, ");
    expect_part(called("ncclRecv").front(), "pp:0->1, 1048576, ");
  }
  CHECK(gpu::alive() == gpu::handles{});
  for (const std::string& each : gpu::complaints()) FAIL_CHECK(each);
}

TEST_CASE("what NCCL reports of a peer ends the step, and all communicators at once") {
  run of(3);
  of.start();
  of.engine->step();
  nccl::fail_async("pp:1->2", ncclRemoteError);
  const executor::execution_error error = error_of(*of.engine);
  CHECK(error.kind() == executor::failure::transport);
  expect_part(error.what(), "step 1, rank ");
  expect_part(error.what(), "channel 1 -> 2: NCCL: a remote process has gone");
  expect_part(error.what(), "what NCCL says of it");
  expect_part(error.what(), "`ncclras`");
  const job_kind kind = error.what_job().kind;
  CHECK((kind == job_kind::send_forward || kind == job_kind::receive_forward));
  of.engine.reset();
  of.check_left();
  CHECK(nccl::revoked() == 13);
  CHECK(nccl::revoking_groups() == 1);
  CHECK(nccl::aborted() == 2);  // at once that whose call has failed, and at last its peer
  CHECK(nccl::aborting_groups() == 2);
}

TEST_CASE("an NCCL that cannot revoke aborts, all communicators at once") {
  run of(3);
  nccl::be_version(22806);
  of.start();
  nccl::fail_async("pp:1->2", ncclRemoteError);
  expect_part(error_of(*of.engine).what(), "channel 1 -> 2: NCCL: a remote process has gone");
  of.engine.reset();
  of.check_left();
  CHECK(nccl::revoked() == 0);
  CHECK(nccl::aborted() == 14);
  CHECK(nccl::aborting_groups() == 1);
}

TEST_CASE("so do all where one does not end when the engine does") {
  run of(2, layout::separate, {.patience = milliseconds(50)});
  of.start();
  of.engine->step();
  nccl::stall("pp:0->1", true);
  of.engine.reset();
  of.check_left();
  CHECK(nccl::revoked() == 0);
  CHECK(nccl::aborted() == 8);
  CHECK(nccl::aborting_groups() == 1);
}

TEST_CASE("an engine is not held up by NCCL that does not come back at a good end") {
  run of(2, layout::separate, {.patience = milliseconds(50)});
  of.start();
  of.engine->step();
  nccl::hold_destroyed(true);
  of.engine.reset();
  CHECK(nccl::alive() == 8);
  nccl::hold_destroyed(false);
  while (nccl::alive() > 0) std::this_thread::sleep_for(milliseconds(1));
  CHECK(nccl::aborted() == 0);
  of.check_left();
}

TEST_CASE("who fails tells the others why, once, and not what they know") {
  watching others;
  {
    run of(2, layout::separate, {}, std::chrono::seconds(2));
    of.with.wire = executor::make_nccl_transport(others, {.kernels_loaded = true});
    of.start();
    of.engine->step();
    CHECK(others.told.empty());
    nccl::stall("pp:0->1", false);
    const executor::execution_error error = error_of(*of.engine);
    of.engine.reset();
    REQUIRE(others.told.size() == 1);
    expect_part(error.what(), others.told[0]);
    expect_part(others.told[0], "step 1 has not ended in time: ");
  }
  others.told.clear();
  {
    run of(2);
    of.with.wire = executor::make_nccl_transport(others, {.kernels_loaded = true});
    of.with.make_device = [](const plan_view&,
                             executor::monitor&) -> std::unique_ptr<executor::device> {
      throw std::runtime_error("no room");
    };
    CHECK_THROWS_WITH(of.start(), "no room");
    of.with.wire.reset();
    CHECK(others.told == std::vector<std::string>{"it could not begin: no room"});
  }
}

TEST_CASE("so does a process that has failed, though NCCL does not notice") {
  watching others;
  // With a call in progress, or not.
  for (const bool calls : {false, true}) {
    others.text.clear();
    run of(2);
    of.with.wire = executor::make_nccl_transport(others, {.kernels_loaded = true});
    of.start();
    of.engine->step();
    nccl::stall("pp:0->1", calls);
    others.text = "process 1 has failed: for a reason";
    const executor::execution_error error = error_of(*of.engine);
    CHECK(error.kind() == executor::failure::transport);
    expect_part(error.what(), "step 1, rank 0: process 1 has failed: for a reason");
    CHECK(others.told.empty());
    of.engine.reset();
    of.with.wire.reset();
    of.check_left();
  }
  // And while the transport is opened.
  run opening(2);
  others.text.clear();
  opening.with.wire = executor::make_nccl_transport(others, {.kernels_loaded = true});
  nccl::stall("group:0", false);
  others.text = "process 1 has failed: for a reason";
  expect_part(refusal_of([&] { opening.start(); }),
              "cannot be opened: process 1 has failed: for a reason");
  opening.with.wire.reset();
  opening.check_left();
}

TEST_CASE("calls in progress for a moment are waited for awake") {
  run of(2);
  of.start();
  const int before = sleeps;
  for (int step = 0; step < 3; ++step) of.engine->step();
  CHECK(sleeps == before);
  of.engine.reset();
  CHECK(sleeps > before);  // which waits for a thread: they are counted
  of.check_left();
}

TEST_CASE("a message that does not come ends the step at its deadline, and is named") {
  run of(2, layout::separate, {}, std::chrono::seconds(2));
  of.start();
  of.engine->step();
  nccl::stall("pp:1->0", false);
  const executor::execution_error error = error_of(*of.engine);
  CHECK(error.kind() == executor::failure::deadline);
  expect_part(error.what(), "of a gradient");
  // Both sides of it were launched, and neither ended.
  expect_part(error.flight_record(),
              "message 0 from rank 1, 28 bytes; meets rank 1's 9, started; named by the error\n");
  expect_part(error.flight_record(),
              "    9     1SEND_B0        started     message 0 to rank 0, 28 bytes; meets rank 0's "
              "8, started\n");
  of.engine.reset();
  of.check_left();
  CHECK(nccl::revoked() == 8);
}

TEST_CASE("a call that stays in progress is not waited for without end") {
  run of(2, layout::separate, {.opening = milliseconds(50), .patience = milliseconds(50)});
  nccl::stall("pp:0->1", true);
  const std::string text = refusal_of([&] { of.start(); });
  expect_part(text, "cannot be opened: channel 0 -> 1: connecting does not end");
  of.check_left();
  // Nor is it revoked, which NCCL does not bear.
  CHECK(nccl::revoked() == 6);
  CHECK(nccl::aborted() == 2);
  CHECK(nccl::aborting_groups() == 1);
}

TEST_CASE(
    "a peer that dies in the first use ends the opening by its limit, and nothing is freed "
    "before") {
  for (const char* const of_whom : {"pp:0->1", "group:1"}) {
    run of(2, layout::separate, {.opening = milliseconds(50)});
    nccl::stall(of_whom, false);
    expect_part(refusal_of([&] { of.start(); }), ": the first use does not end");
    of.with.wire.reset();
    of.check_left();
  }
}

TEST_CASE("what devices take to be made is no part of the time to connect") {
  run of(2, layout::separate, {.opening = std::chrono::seconds(1)});
  of.with.make_device = [](const plan_view& plan, executor::monitor& watch) {
    std::this_thread::sleep_for(milliseconds(600));
    return executor::make_cuda_device(plan, {.device = plan.rank}, watch);
  };
  // Whoever asks whether a first use is over has to ask again.
  gpu::answer_late(milliseconds(1));
  CHECK_NOTHROW(of.start());
  of.engine.reset();
  of.check_left();
}

TEST_CASE("every communicator is used first with what it has in a step, alone on its GPU") {
  run of(3);
  of.start();
  // Of 28 bytes each message, and of the groups' own elements.
  for (const std::string& each : called("ncclSend")) expect_part(each, ", 28, ");
  for (const std::string& each : called("ncclAllReduce"))
    expect_part(each, each.starts_with("group:0") ? "group:0, 11, " : "group:1, 5, ");
  of.engine->step();
  of.engine.reset();
  of.check_left();
}

TEST_CASE("pairs of ranks connect side by side, not one after the other along the pipeline") {
  run of(5);
  of.start();
  std::vector<std::string> order;
  for (const std::string& each : called("ncclSend"))
    order.push_back(each.substr(0, each.find(',')));
  CHECK(order == std::vector<std::string>{"pp:0->1", "pp:1->0", "pp:2->3", "pp:3->2", "pp:1->2",
                                          "pp:2->1", "pp:3->4", "pp:4->3"});
}

TEST_CASE("nor is one in a step waited for longer than the step may take") {
  run of(2, layout::separate, {.patience = milliseconds(50)}, milliseconds(300));
  of.start();
  nccl::stall("pp:0->1", true);
  // Some call of the first steps is in progress for a while, and then for ever.
  std::string text;
  for (int step = 0; step < 20 && text.empty(); ++step) {
    try {
      of.engine->step();
    } catch (const executor::execution_error& failed) {
      text = failed.what();
      CHECK(failed.kind() == executor::failure::deadline);
    }
  }
  expect_part(text, "channel 0 -> 1: nccl");
  expect_part(text, " does not end: another rank has not come");
  of.engine.reset();
  of.check_left();
}

TEST_CASE("who issues in a thread of its own has left NCCL's call before that is ended") {
  for (int time = 0; time < 8; ++time) {
    run of(2, layout::separate, {}, milliseconds(150));
    of.with.issue = executor::issuing::thread_per_rank;
    of.start();
    nccl::stall("pp:0->1", true);
    const executor::execution_error error = error_of(*of.engine);
    CHECK(error.kind() == executor::failure::deadline);
    CHECK(error.threads_left() == 0);
    of.engine.reset();
    of.check_left();
  }
}

TEST_CASE("an engine that is refused when all is opened gives communicators back before arenas") {
  struct no_backward final : executor::stage {
    void run(const executor::context&) override {}
    bool serves(job_kind kind) const override { return kind != job_kind::backward; }
  } stage;
  run of(2, layout::separate, {.registered = true});
  of.use_arenas(executor::nccl_memory());
  of.pointers[1] = &stage;
  expect_part(refusal_of([&] { of.start(); }), "rank 1, instruction ");
  CHECK(called("ncclCommRegister").size() > 0);
  of.check_left();
}

TEST_CASE("what else than NCCL fails while it is opened ends what is under way, too") {
  run of(2);
  nccl::stall("pp:0->1", false);
  // The first event that is recorded is behind the first use.
  gpu::fail_call(1, cudaErrorInvalidValue, "cudaEventRecord");
  CHECK_THROWS_AS(of.start(), executor::cuda::error);
  CHECK(gpu::has_failed());
  CHECK(nccl::revoked() + nccl::aborted() > 0);
  of.with.wire.reset();
  of.check_left();
}

TEST_CASE("no GPU is used but the ranks' own, also where the step has failed") {
  for (const bool fails : {false, true}) {
    run of(2);
    gpu::reset(1, 3);
    of.with.make_device = [](const plan_view& plan, executor::monitor& watch) {
      return executor::make_cuda_device(plan, {.device = 1 + plan.rank}, watch);
    };
    const auto in_its_own_thread = [](const auto& does) { std::thread(does).join(); };
    in_its_own_thread([&] { of.start(); });
    in_its_own_thread([&] { of.engine->step(); });
    if (fails) {
      nccl::fail_async("pp:0->1", ncclRemoteError);
      in_its_own_thread([&] { expect_part(error_of(*of.engine).what(), "a remote process"); });
    }
    in_its_own_thread([&] { of.engine.reset(); });
    CHECK(gpu::in_use() == std::set{1, 2});
    of.check_left();
  }
}

TEST_CASE("whichever call of NCCL fails, it is told, and nothing is left") {
  for (const ncclResult_t code : {ncclSystemError, ncclUnhandledCudaError, ncclInternalError,
                                  ncclInvalidArgument, ncclInvalidUsage, ncclRemoteError}) {
    int opening = 0;
    int running = 0;
    for (int n = 1;; ++n) {
      run of(2, layout::serial);
      nccl::fail_call(n, code);
      std::string text;
      try {
        of.start();
        of.engine->step();
      } catch (const executor::plan_error& refused) {
        ++opening;
        text = refused.what();
      } catch (const executor::execution_error& failed) {
        ++running;
        text = failed.what();
      }
      const bool failed = nccl::has_failed();
      CHECK(nccl::open_groups() == 0);
      of.engine.reset();
      if (!failed || text.empty()) break;
      CAPTURE(n);
      CAPTURE(code);
      expect_part(text, code == ncclRemoteError ? "a remote process has gone" : "some NCCL error");
      of.with.wire.reset();
      of.check_left();
      CHECK(nccl::revoking_groups() == (nccl::revoked() > 0 ? 1 : 0));
      // Whose peer has not come is connecting yet.
      CHECK(nccl::aborted() == static_cast<int>(nccl::communicators().size() % 2));
    }
    CHECK(opening > 10);
    CHECK(running > 3);
  }
}

TEST_CASE("whichever communicator refuses to be revoked, it is aborted, and none spins on") {
  for (int n = 1; n <= 8; ++n) {
    run of(2, layout::separate, {}, milliseconds(100));
    of.start();
    nccl::stall("pp:1->0", false);
    nccl::fail_call(n, n % 2 == 0 ? ncclInternalError : ncclInvalidArgument, "ncclCommRevoke");
    CHECK(error_of(*of.engine).kind() == executor::failure::deadline);
    of.engine.reset();
    CHECK(nccl::has_failed());
    CHECK(nccl::revoked() == 7);
    CHECK(nccl::revoking_groups() == 1);
    CHECK(nccl::aborted() == 1);
    CHECK(nccl::aborting_groups() == 1);
    of.check_left();
  }
}
