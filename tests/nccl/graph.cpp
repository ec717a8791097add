// Steps with NCCL's messages and sums as graphs, between simulated GPUs and with a simulated NCCL:
// every rank of a pipeline in a process of its own, which is a thread here.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cuda/driver/simulated_gpu.hpp"
#include "cuda/executor_kernels.hpp"
#include "driver/simulated_nccl.hpp"
#include "executor/failures.hpp"
#include "nccl/support.hpp"
#include "stretto/executor/bootstrap.hpp"
#include "stretto/executor/cuda/device.hpp"
#include "stretto/executor/cuda/nccl_transport.hpp"
#include "stretto/executor/cuda/step_graph.hpp"
#include "stretto/executor/engine.hpp"
#include "stretto/model/job_text.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

constexpr int ranks = 2;

struct launching_stage final : executor::stage {
  void run(const executor::context& at) override {
    gpu::enqueue_until(executor::native_stream(at), to_text(at.what).view(),
                       [this, of = at.what] { return !waits || waits(of); });
  }
  std::function<bool(const job&)> waits{};  // whether the job is over
};

//! One process.
struct member {
  int rank;
  executor::bootstrap* between;
  executor::engine* engine = nullptr;

  //! Until all are here; the first of them does something before any goes on.
  void meet(const std::function<void()>& first = {}) const {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    between->all_gather("met", "", limit);
    if (rank == 0 && first) first();
    between->all_gather("went on", "", limit);
  }
};

struct told {
  std::string text{};  // empty: nothing was thrown
  bool by_plan = false;
  executor::failure kind{};
  int instruction = -1;
  std::string record{};
};

//! @param records  whether the process does
//! @return what each has thrown
template <class Use>
std::vector<told> run(
    Use use, const std::function<bool(int rank)>& records = [](int) { return true; },
    std::chrono::nanoseconds deadline = std::chrono::minutes(1),
    const std::function<bool(const job&)>& waits = {}) {
  gpu::reset(7, ranks);
  nccl::reset();
  define_executor_kernels();
  const std::vector<plan_builder> plans = plans_of(ranks, layout::separate);
  auto between = executor::make_local_bootstraps(ranks);
  std::vector<told> all(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const auto at = static_cast<std::size_t>(rank);
      told& mine = all[at];
      launching_stage stage;
      stage.waits = waits;
      executor::stage* const stages[] = {&stage};
      executor::options with;
      with.make_device = [](const plan_view& plan, executor::monitor& watch) {
        return executor::make_cuda_device(
            plan, {.device = plan.rank, .patience = std::chrono::seconds(1)}, watch);
      };
      with.wire = executor::make_nccl_transport(*between[at], {.kernels_loaded = true});
      with.deadline = deadline;
      with.grace = std::chrono::seconds(1);
      if (records(rank)) with.graph = executor::make_cuda_graph;
      try {
        const plan_view view = plans[at].view();
        executor::engine engine({&view, 1}, stages, std::move(with));
        use(member{rank, between[at].get(), &engine});
      } catch (const executor::plan_error& refused) {
        mine = {refused.what(), true};
      } catch (const executor::execution_error& failed) {
        mine = {failed.what(), false, failed.kind(), failed.instruction(),
                failed.flight_record()};
      } catch (const std::exception& other) {
        FAIL_CHECK(std::string(other.what()));
      }
    });
  for (std::thread& each : threads) each.join();
  CHECK(gpu::alive() == gpu::handles{});
  CHECK(nccl::alive() == 0);
  for (const std::string& each : gpu::complaints()) FAIL_CHECK(each);
  return all;
}

//! What is put on each stream in calls from the one number to the other.
std::map<std::string, std::vector<std::string>> work(std::size_t from, std::size_t to) {
  const std::set<std::string> names{"kernel", "cudaMemsetAsync", "cudaMemcpyAsync",
                                    "ncclSend", "ncclRecv", "ncclAllReduce"};
  std::map<std::string, std::vector<std::string>> made;
  for (std::size_t at = from; at < to; ++at) {
    const gpu::call& each = gpu::calls()[at];
    if (names.count(each.name) == 0) continue;
    made[each.arguments.substr(each.arguments.rfind(", ") + 2)].push_back(gpu::to_text(each));
  }
  return made;
}

int count(const std::string& name, std::size_t from, std::size_t to) {
  int found = 0;
  for (std::size_t at = from; at < to; ++at) found += gpu::calls()[at].name == name ? 1 : 0;
  return found;
}

}  // namespace

TEST_CASE("what is recorded is what is issued, and later steps are a launch for each process") {
  std::vector<std::size_t> seen;
  const auto all = run([&](const member& of) {
    of.meet([&] { seen.push_back(gpu::calls().size()); });
    for (int step = 0; step < 4; ++step) {
      of.engine->step();
      of.meet([&] { seen.push_back(gpu::calls().size()); });
    }
  });
  for (const told& each : all) CHECK(each.text == "");
  REQUIRE(seen.size() == 5);
  const auto issued = work(seen[0], seen[1]);
  CHECK(issued.size() >= 6);
  CHECK(work(seen[1], seen[2]) == issued);
  CHECK(count("cudaStreamBeginCapture", seen[1], seen[2]) == ranks);
  CHECK(count("cudaGraphLaunch", seen[1], seen[2]) == ranks);
  for (std::size_t step = 2; step < 4; ++step) {
    CHECK(work(seen[step], seen[step + 1]).empty());
    CHECK(count("cudaGraphLaunch", seen[step], seen[step + 1]) == ranks);
  }
  CHECK(nccl::aborted() == 0);
  CHECK(nccl::revoked() == 0);
}

TEST_CASE("processes that wait for room in their queues do not wait for one another") {
  for (const std::size_t depth : {1U, 3U}) {
    const auto all = run([depth](const member& of) {
      of.meet([depth] { gpu::limit_queues(depth); });
      for (int step = 0; step < 3; ++step) of.engine->step();
    });
    for (const told& each : all) CHECK(each.text == "");
  }
}

TEST_CASE("what NCCL reports of a peer ends a replayed step, and all communicators at once") {
  const auto all = run([&](const member& of) {
    for (int step = 0; step < 3; ++step) of.engine->step();
    of.meet([] { nccl::fail_async("pp:0->1", ncclRemoteError); });
    of.engine->step();
  });
  for (int rank = 0; rank < ranks; ++rank) {
    const told& mine = all[static_cast<std::size_t>(rank)];
    CHECK(mine.kind == executor::failure::transport);
    const char* const first[] = {"step 3, rank 0, instruction 1, 0SEND_F0",
                                 "step 3, rank 1, instruction 0, 1RECV_F0"};
    expect_part(mine.text, first[rank]);
    expect_part(mine.text, ": channel 0 -> 1: NCCL: a remote process has gone");
    CHECK(mine.instruction == 1 - rank);
    expect_part(mine.record, "named by the error");
  }
  // None is revoked, which would not last as long as the replay.
  CHECK(nccl::revoked() == 0);
  CHECK(nccl::aborted() == 8);
  CHECK(nccl::aborting_groups() == ranks);
}

TEST_CASE("of the messages of a replay the first is named that was not exchanged") {
  std::atomic<bool> in_step{false}, arrived{false};  // step 3, and message 0 there
  std::atomic<int> looked{0};  // since then, whether message 1 could be sent
  const auto all = run(
      [&](const member& of) {
        for (int step = 0; step < 3; ++step) of.engine->step();
        of.meet([&] { in_step = true; });
        try {
          of.engine->step();
        } catch (const executor::execution_error&) {
          if (of.rank == 0) in_step = false;
          throw;
        }
      },
      [](int) { return true; }, std::chrono::minutes(1),
      [&](const job& of) {
        if (of == job{1, 0, 0, job_kind::forward} && in_step) arrived = true;
        if (of != job{0, 1, 0, job_kind::forward} || !in_step) return true;
        // By then all is done that does not wait for it.
        if (arrived && ++looked == 2000) nccl::fail_async("pp:0->1", ncclRemoteError);
        return false;
      });
  expect_part(all[0].text, "step 3, rank 0, instruction 3, 0SEND_F1");
  expect_part(all[1].text, "step 3, rank 1, instruction 2, 1RECV_F1");
  expect_part(
      all[0].record,
      "    3     0SEND_F1        issued      message 1 to rank 1, 28 bytes; waits for 2 0F1; "
      "named by the error\n");
  expect_part(all[1].record,
              "    2     1RECV_F1        started     message 1 from rank 0, 28 bytes; "
              "named by the error\n");
}

TEST_CASE("what never comes of a replay ends it by the deadline, as of a step that is issued") {
  for (const char* const stuck : {"pp:1->0", "group:0"}) {
    std::vector<told> told_by[2];
    for (const bool graph : {false, true}) {
      told_by[graph] = run(
          [&](const member& of) {
            for (int step = 0; step < 3; ++step) of.engine->step();
            of.meet([&] { nccl::stall(stuck, false); });
            of.engine->step();
          },
          [graph](int) { return graph; }, std::chrono::seconds(1));
      CHECK(nccl::revoked() == (graph ? 0 : 8));
      CHECK(nccl::revoking_groups() == (graph ? 0 : ranks));
      CHECK(nccl::aborted() == (graph ? 8 : 0));
      CHECK(nccl::aborting_groups() == (graph ? ranks : 0));
    }
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const told& issued = told_by[0][rank];
      const told& replayed = told_by[1][rank];
      CHECK(replayed.kind == executor::failure::deadline);
      CHECK(replayed.instruction >= 0);
      CHECK(replayed.text == issued.text);
      CHECK(replayed.record == issued.record);
    }
  }
}

TEST_CASE("a call that fails while a step is recorded leaves nothing behind, capture included") {
  for (const char* const name : {"ncclSend", "ncclRecv", "ncclAllReduce"}) {
    CAPTURE(std::string(name));
    const auto all = run([&](const member& of) {
      of.engine->step();
      of.meet([&] { nccl::fail_call(2, ncclSystemError, name); });
      try {
        of.engine->step();
      } catch (const executor::execution_error&) {
        nccl::fail_async("pp:0->1", ncclRemoteError);  // as the other one is to learn
        throw;
      }
    });
    int named = 0;
    for (const told& each : all) {
      CHECK(each.kind == executor::failure::transport);
      if (each.text.find("some NCCL error") == std::string::npos) continue;
      CHECK(each.instruction >= 0);
      ++named;
    }
    CHECK(named == 1);
  }
}

TEST_CASE("graphs are refused beside a process that issues, and to one with several GPUs") {
  const auto all = run([](const member&) {}, [](int rank) { return rank == 0; });
  for (const told& each : all) {
    CHECK(each.by_plan);
    CHECK(each.text ==
          "process 1 has steps issued one by one, process 0 has steps recorded as a graph");
  }
  gpu::reset(1, ranks);
  const auto alone = executor::make_local_bootstraps(1);
  const std::vector<plan_builder> plans = plans_of(ranks, layout::separate);
  launching_stage stage;
  executor::stage* const stages[] = {&stage, &stage};
  executor::options with;
  with.make_device = [](const plan_view& plan, executor::monitor& watch) {
    return executor::make_cuda_device(plan, {.device = plan.rank}, watch);
  };
  with.wire = executor::make_nccl_transport(*alone[0], {.kernels_loaded = true});
  with.graph = executor::make_cuda_graph;
  expect_part(refusal_of([&] { executor::engine(views(plans), stages, std::move(with)); }),
              "a graph with NCCL's operations needs a process for each GPU: those that one process "
              "launches on 2 may wait for one another");
}
