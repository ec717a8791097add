// The CUDA device on simulated GPUs: what it calls, in which order, and what becomes of errors.
#include "stretto/executor/cuda/device.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "driver/simulated_gpu.hpp"
#include "executor/failures.hpp"
#include "executor/pipeline.hpp"
#include "executor_kernels.hpp"
#include "one_rank.hpp"
#include "stretto/executor/cuda/error.hpp"
#include "stretto/executor/cuda/loopback_transport.hpp"
#include "stretto/executor/cuda/step_graph.hpp"
#include "stretto/executor/trace.hpp"
#include "support.hpp"
#include "support/captured_errors.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

std::vector<gpu::call> since(std::size_t first) {
  return {gpu::calls().begin() + static_cast<std::ptrdiff_t>(first), gpu::calls().end()};
}

bool is_of_a_step(const std::string& name) {
  for (const char* const allowed :
       {"cudaSetDevice", "cudaGetLastError", "kernel", "cudaEventRecord", "cudaStreamWaitEvent",
        "cudaMemsetAsync", "cudaMemcpyAsync", "cudaEventQuery"})
    if (name == allowed) return true;
  return false;
}

}  // namespace

TEST_CASE("no GPU is none, and one that does not answer is an error") {
  gpu::reset(1);
  CHECK(executor::cuda_device_count() > 0);
  for (const cudaError_t none : {cudaErrorNoDevice, cudaErrorInsufficientDriver}) {
    gpu::fail_call(1, none, "cudaGetDeviceCount");
    CHECK(executor::cuda_device_count() == 0);
    CHECK(cudaGetLastError() == cudaSuccess);
  }
  gpu::fail_call(1, cudaErrorSystemNotReady, "cudaGetDeviceCount");
  CHECK_THROWS_WITH_AS((void)executor::cuda_device_count(),
                       doctest::Contains("cudaGetDeviceCount: "), executor::cuda::error);
}

TEST_CASE("steps have the bits of the plain computation, whatever order streams run in") {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U})
    for (const bool poison : {false, true}) {
      gpu::reset(seed);
      {
        one_rank run;
        executor::options with = on_gpu();
        with.poison = poison;
        executor::engine engine({&run.view, 1}, run.stages, std::move(with));
        for (int step = 0; step < 4; ++step) engine.step();
        CHECK(std::vector<float>{run.inner.sum} == expected_sums(1, 3, 5, 4));
      }
      CHECK(gpu::alive() == gpu::handles{});
      CHECK(gpu::complaints().empty());
    }
}

TEST_CASE("a step makes nothing, waits for nothing and calls nobody back") {
  gpu::reset();
  one_rank run;
  executor::engine engine({&run.view, 1}, run.stages, on_gpu());
  const std::size_t before = gpu::calls().size();
  const gpu::handles made = gpu::alive();
  for (int step = 0; step < 3; ++step) engine.step();
  for (const gpu::call& each : since(before))
    CHECK_MESSAGE(is_of_a_step(each.name), gpu::to_text(each));
  CHECK(gpu::alive() == made);
}

TEST_CASE("streams have the plan's priorities, events no times unless they are asked for") {
  for (const bool timing : {false, true}) {
    gpu::reset();
    one_rank run;
    int urgent = 3;
    for (stream_info& each : run.plans[0].streams) each.priority = urgent -= 2;  // 1, -1, ... -7
    run.view = run.plans[0].view();
    const executor::engine engine({&run.view, 1}, run.stages, on_gpu({.timing = timing}));
    std::vector<std::string> streams;
    bool times = false;
    for (const gpu::call& each : gpu::calls()) {
      const std::string name = each.name;
      if (name == "cudaStreamCreateWithPriority") streams.push_back(each.arguments);
      if (name == "cudaEventCreateWithFlags") times = times || each.arguments == "with times";
    }
    CHECK(streams ==
          std::vector<std::string>{"non-blocking, priority 0", "non-blocking, priority -2",
                                   "non-blocking, priority -4", "non-blocking, priority -5",
                                   "non-blocking, priority -5"});
    CHECK(times == timing);
  }
}

TEST_CASE("no GPU is used but the ranks' own, by whichever thread") {
  define_executor_kernels();
  const std::vector<plan_builder> plans = pipeline_plans(3, 4, 7, layout::separate);
  const auto in_its_own_thread = [](const auto& does) { std::thread(does).join(); };
  for (const bool graph : {false, true})
    for (const auto issue : {executor::issuing::caller, executor::issuing::thread_per_rank}) {
      if (graph && issue == executor::issuing::thread_per_rank) continue;
      gpu::reset(1, 4);
      {
        const int ranks = issue == executor::issuing::caller ? 3 : 1;
        const std::vector<plan_builder> made =
            ranks == 3 ? plans : pipeline_plans(1, 4, 7, layout::separate);
        sample_stages inner(ranks);
        enqueueing_stages stages(
            {inner.pointers.begin(), inner.pointers.begin() + static_cast<std::ptrdiff_t>(ranks)});
        std::unique_ptr<executor::engine> engine;
        in_its_own_thread([&] {
          executor::options with;
          with.make_device = [](const plan_view& plan, executor::monitor& watch) {
            return executor::make_cuda_device(plan, {.device = 2 + plan.rank % 2}, watch);
          };
          with.wire = executor::make_cuda_loopback_transport();
          with.issue = issue;
          if (graph) with.graph = executor::make_cuda_graph;
          engine =
              std::make_unique<executor::engine>(views(made), stages.pointers, std::move(with));
          int chosen = -1;
          CHECK(cudaGetDevice(&chosen) == cudaSuccess);
          CHECK(chosen >= 2);  // GPU 0, which was as good as chosen, is not taken up
        });
        for (int step = 0; step < 4; ++step) in_its_own_thread([&] { engine->step(); });
        if (!graph) CHECK(inner.sums() == expected_sums(ranks, 4, 7, 4));
        in_its_own_thread([&] { engine.reset(); });
        CHECK(gpu::in_use() == (ranks == 3 ? std::set{2, 3} : std::set{2}));
      }
      CHECK(gpu::alive() == gpu::handles{});
      CHECK(gpu::complaints().empty());
    }
  // What a thread has chosen and uses it has again.
  gpu::reset(1, 2);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  {
    sample_stages inner(3);
    enqueueing_stages stages({inner.pointers[0], inner.pointers[1], inner.pointers[2]});
    const executor::engine engine(views(plans), stages.pointers, on_gpus(1));
  }
  int chosen = -1;
  CHECK(cudaGetDevice(&chosen) == cudaSuccess);
  CHECK(chosen == 1);
}

TEST_CASE("traces have every instruction, in an order that the plan allows") {
  gpu::reset(7);
  one_rank run;
  executor::options with = on_gpu({.timing = true});
  with.trace_steps = 2;
  executor::engine engine({&run.view, 1}, run.stages, std::move(with));
  for (int step = 0; step < 4; ++step) engine.step();
  const auto trace = engine.trace();
  CHECK(trace.size() == 2 * run.view.instructions.size());
  const auto broken = executor::check_against({&run.view, 1}, trace);
  CHECK_MESSAGE(!broken, (broken ? broken->text : std::string()));

  executor::options without = on_gpu();
  without.trace_steps = 1;
  expect_part(refusal_of([&] {
                executor::engine({&run.view, 1}, run.stages, std::move(without));
              }),
              "the device of rank 0 takes no times; on a GPU cuda_settings::timing");
}

TEST_CASE("a stage that takes too long ends the step at its deadline, and is named") {
  struct slow final : executor::stage {
    slow(bool looks_up, int when) : looks(looks_up), step(when) {}
    void run(const executor::context& at) override {
      ++calls;
      if (at.step != step || at.what != job{0, 1, 0, job_kind::forward}) return;
      calls = 0;
      if (!looks) std::this_thread::sleep_for(std::chrono::milliseconds(1100));
      while (looks && !at.stopped()) std::this_thread::yield();
    }
    const bool looks;
    const int step;
    int calls = 0;  // since
  };
  // Issued, or recorded into a graph, which the second step is.
  for (const auto& [looks, recorded] : {std::pair{true, false}, {false, false}, {true, true}}) {
    gpu::reset();
    one_rank run;
    slow stage(looks, recorded ? 1 : 0);
    executor::stage* const stages[] = {&stage};
    executor::options with = on_gpu();
    with.deadline = std::chrono::seconds(1);
    if (recorded) {
      define_executor_kernels();
      with.graph = executor::make_cuda_graph;
      with.wire = executor::make_cuda_loopback_transport();
    }
    executor::engine engine({&run.view, 1}, stages, std::move(with));
    if (recorded) engine.step();
    const executor::execution_error error = error_of(engine);
    CHECK(error.kind() == executor::failure::deadline);
    CHECK(error.what_job() == job{0, 1, 0, job_kind::forward});
    expect_part(error.what(),
                "0F1 (stage 0, forward, micro-batch 1) was issued when its time was over");
    CHECK(stage.calls == 0);
    for (const gpu::call& each : gpu::calls()) CHECK(std::string(each.name) != "cudaGraphLaunch");
  }
}

TEST_CASE("no step leaves \"not ready\" behind, for the next launch of whoever has the thread") {
  for (const std::uint64_t seed : {1U, 2U, 3U})
    for (const bool timing : {false, true}) {
      gpu::reset(seed);
      one_rank run;
      executor::options with = on_gpu({.timing = timing});
      with.trace_steps = timing ? 1 : 0;
      executor::engine engine({&run.view, 1}, run.stages, std::move(with));
      CHECK(cudaGetLastError() == cudaSuccess);
      for (int step = 0; step < 4; ++step) {
        engine.step();
        CHECK(cudaGetLastError() == cudaSuccess);
      }
    }
}

TEST_CASE("times are the host's, however long ago a GPU's own clock was set by it") {
  const auto now = [] {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  for (const int device : {0, 1}) {  // a slower clock, and a quicker one
    CAPTURE(device);
    gpu::reset(8, 2);
    one_rank run;
    executor::options with = on_gpu({.device = device, .timing = true});
    with.trace_steps = 2;
    executor::engine engine({&run.view, 1}, run.stages, std::move(with));
    std::vector<std::int64_t> bounds{now()};
    for (int step = 0; step < 20; ++step) {
      engine.step();
      bounds.push_back(now());
    }
    const auto trace = engine.trace();
    CHECK(trace.size() == 2 * run.view.instructions.size());
    for (const executor::trace_record& one : trace) {
      const auto step = static_cast<std::size_t>(one.step);
      const std::int64_t before = bounds[step], after = bounds[step + 1];
      CHECK(one.start >= before);
      // Twice as quick, it has the step last twice as long, at most.
      CHECK(one.end <= (device == 0 ? after : after + (after - before)));
    }
  }
}

TEST_CASE("work that never ends is named after the deadline, and nothing waits for it") {
  gpu::reset();
  one_rank run;
  bool over = false;
  struct stuck_stage final : executor::stage {
    void run(const executor::context& at) override {
      if (at.what.kind == job_kind::backward && at.what.microbatch == 1)
        gpu::enqueue_until(executor::native_stream(at), "stuck", [this] { return *over; });
    }
    bool* over = nullptr;
  } stage;
  stage.over = &over;
  executor::stage* const stages[] = {&stage};
  executor::options with = on_gpu({.patience = std::chrono::milliseconds(20)});
  with.deadline = std::chrono::seconds(1);
  with.grace = std::chrono::milliseconds(20);
  {
    executor::engine engine({&run.view, 1}, stages, std::move(with));
    const executor::execution_error error = error_of(engine);
    CHECK(error.kind() == executor::failure::deadline);
    CHECK(error.what_job() == job{0, 1, 0, job_kind::backward});
    CHECK(error.threads_left() >= 1);
    expect_part(error.what(), "streams of devices whose work has not ended");
    expect_part(error.flight_record(),
                "rank 0: 4 of 7 done; first missing: 4 0B1\n"
                "  compute: 4 of 7 done\n"
                "    1     0F1             done\n"
                "    2     0F2             done\n"
                "    3     0B0             done\n"
                "    4     0B1             started     named by the error\n"
                "    5     0B2             issued\n"
                "    6     0END_STEP       issued\n");
    CHECK(error_of(engine).kind() == executor::failure::refused);
  }
  // The memory is not freed under work that may still use it; CUDA would have waited.
  CHECK(gpu::complaints().empty());
  CHECK(gpu::alive().allocations == 1);
  over = true;
}

TEST_CASE("work that goes on is waited for, and grace counts from where it does not") {
  gpu::reset();
  one_rank run;
  struct slow_stage final : executor::stage {
    void run(const executor::context& at) override {
      gpu::enqueue_for(executor::native_stream(at), to_text(at.what).view(), 1e8);
    }
  } stage;
  executor::stage* const stages[] = {&stage};
  executor::options with = on_gpu();
  with.deadline = std::chrono::milliseconds(50);
  with.grace = std::chrono::milliseconds(400);  // of six times 100
  executor::engine engine({&run.view, 1}, stages, std::move(with));
  const executor::execution_error error = error_of(engine);
  CHECK(error.kind() == executor::failure::deadline);
  CHECK(error.threads_left() == 0);
}

TEST_CASE("the flight record has both sides of a message that cannot come") {
  gpu::reset();
  const std::vector<plan_builder> plans = pipeline_plans(2, 2, 8, layout::separate);
  bool over = false;
  struct stuck_stage final : executor::stage {
    void run(const executor::context& at) override {
      if (at.rank == 1 && at.what.kind == job_kind::forward && at.what.microbatch == 1)
        gpu::enqueue_until(executor::native_stream(at), "stuck", [this] { return *over; });
    }
    bool* over = nullptr;
  } stage;
  stage.over = &over;
  executor::stage* const stages[] = {&stage, &stage};
  executor::options with = on_gpu({.patience = std::chrono::milliseconds(20)});
  with.wire = executor::make_cuda_loopback_transport();
  with.deadline = std::chrono::seconds(1);
  with.grace = std::chrono::milliseconds(20);
  executor::engine engine(views(plans), stages, std::move(with));
  const executor::execution_error error = error_of(engine);
  CHECK(error.what_job() == job{1, 1, 0, job_kind::forward});
  CHECK(error.flight_record() ==
        "step 0, what each stream has done of its plan; messages count from 0 in a step\n"
        "rank 0: 4 of 9 done; first missing: 4 0RECV_B0\n"
        "  compute: 2 of 5 done\n"
        "    0     0F0             done\n"
        "    2     0F1             done\n"
        "    5     0B0             issued      waits for 4 0RECV_B0\n"
        "    7     0B1             issued      waits for 6 0RECV_B1\n"
        "    8     0END_STEP       issued      waits for 6 0RECV_B1\n"
        "  send_next: 2 of 2 done\n"
        "  receive_next: 0 of 2 done\n"
        "    4     0RECV_B0        started     message 0 from rank 1, 32 bytes; meets rank 1's 5, "
        "issued\n"
        "    6     0RECV_B1        issued      message 1 from rank 1, 32 bytes; meets rank 1's 7, "
        "issued\n"
        "rank 1: 3 of 9 done; first missing: 3 1F1\n"
        "  compute: 1 of 5 done\n"
        "    1     1F0             done\n"
        "    3     1F1             started     named by the error\n"
        "    4     1B0             issued\n"
        "    6     1B1             issued\n"
        "    8     0END_STEP       issued      waits for 7 1SEND_B1\n"
        "  receive_previous: 2 of 2 done\n"
        "  send_previous: 0 of 2 done\n"
        "    5     1SEND_B0        issued      message 0 to rank 0, 32 bytes; meets rank 0's 4, "
        "started; "
        "waits for 4 1B0\n"
        "    7     1SEND_B1        issued      message 1 to rank 0, 32 bytes; meets rank 0's 6, "
        "issued; "
        "waits for 6 1B1\n");
  over = true;
}

TEST_CASE("what a step has done does not depend on when the one before was seen to end") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    gpu::reset(seed);
    one_rank run;
    struct waiting_stage final : executor::stage {
      void run(const executor::context& at) override {
        gpu::enqueue_until(executor::native_stream(at), to_text(at.what).view(),
                           [this, of = at.what] { return is_over(of); });
      }
      //! The last one while it is asked for the end of the step, so that all that is asked for
      //! besides has not been seen to end.
      bool is_over(const job& of) const {
        if (of.kind == job_kind::backward && of.microbatch == 2)
          return gpu::to_text(gpu::calls().back()) == end;
        return !stuck || of != job{0, 1, 0, job_kind::forward};
      }
      std::string end{};
      bool stuck = false;
    } stage;
    stage.end = "cudaEventQuery(event " + std::to_string(run.view.events) + ")";
    executor::stage* const stages[] = {&stage};
    executor::engine engine({&run.view, 1}, stages, on_gpu());
    for (int step = 0; step < 3; ++step) engine.step();
    stage.stuck = true;
    gpu::fail_call(300, cudaErrorIllegalAddress, "cudaEventQuery");
    const executor::execution_error error = error_of(engine);
    CHECK(error.what_job() == job{0, 1, 0, job_kind::forward});
    expect_part(error.flight_record(), "  compute: 1 of 7 done\n");
    expect_part(error.flight_record(),
                "    1     0F1             started     named by the error\n");
  }
}

TEST_CASE("a launch whose error nobody looked at is named, and not one from before the step") {
  gpu::reset();
  one_rank run;
  struct careless_stage final : executor::stage {
    void run(const executor::context& at) override {
      if (at.step == 1 && at.what.microbatch == 2) static_cast<void>(cudaSetDevice(99));
    }
  } stage;
  executor::stage* const stages[] = {&stage};
  executor::engine engine({&run.view, 1}, stages, on_gpu());
  static_cast<void>(cudaSetDevice(98));
  engine.step();
  const executor::execution_error error = error_of(engine);
  CHECK(error.kind() == executor::failure::stage);
  CHECK(error.what_job() == job{0, 2, 0, job_kind::forward});
  expect_part(error.what(), "a launch: ");
}

TEST_CASE("a stage may ask whether something of its own is done") {
  gpu::reset();
  one_rank run;
  struct asking_stage final : executor::stage {
    explicit asking_stage(executor::stage& of) : inner(of) {}
    void run(const executor::context& at) override {
      inner.run(at);
      CHECK(cudaEventRecord(event.get(), executor::native_stream(at)) == cudaSuccess);
      not_ready += cudaEventQuery(event.get()) == cudaErrorNotReady;
    }
    executor::stage& inner;
    executor::cuda::owned_event event = executor::cuda::make_event();
    int not_ready = 0;
  } stage(run.stage);
  executor::stage* const stages[] = {&stage};
  executor::engine engine({&run.view, 1}, stages, on_gpu());
  for (int step = 0; step < 10; ++step) engine.step();
  CHECK(stage.not_ready > 0);
  CHECK(std::vector<float>{run.inner.sum} == expected_sums(1, 3, 5, 10));
}

TEST_CASE("the flight record has a launch that failed far ahead of what runs") {
  gpu::reset();
  bool over = false;
  struct careless_stage final : executor::stage {
    void run(const executor::context& at) override {
      if (at.what.microbatch == 0)
        gpu::enqueue_until(executor::native_stream(at), "stuck", [this] { return *over; });
      if (at.what.microbatch == 11) static_cast<void>(cudaSetDevice(99));
    }
    bool* over = nullptr;
  } stage;
  stage.over = &over;
  const std::vector<plan_builder> plans = pipeline_plans(1, 12, 8, layout::separate);
  executor::stage* const stages[] = {&stage};
  executor::options with = on_gpu({.patience = std::chrono::milliseconds(20)});
  with.grace = std::chrono::milliseconds(20);
  executor::engine engine(views(plans), stages, std::move(with));
  const executor::execution_error error = error_of(engine);
  CHECK(error.kind() == executor::failure::stage);
  expect_part(error.flight_record(),
              "  compute: 0 of 25 done\n"
              "    0     0F0             started\n"
              "    1     0F1             issued\n"
              "    2     0F2             issued\n"
              "    3     0F3             issued\n"
              "    4     0F4             issued\n"
              "    and 20 more, of which\n"
              "    11    0F11            not issued  named by the error\n");
  over = true;
}

TEST_CASE("a thread of the rank's own issues while another one looks") {
  gpu::reset();
  {
    one_rank run;
    executor::options with = on_gpu();
    with.issue = executor::issuing::thread_per_rank;
    executor::engine engine({&run.view, 1}, run.stages, std::move(with));
    for (int step = 0; step < 50; ++step) engine.step();
    CHECK(std::vector<float>{run.inner.sum} == expected_sums(1, 3, 5, 50));
  }
  CHECK(gpu::alive() == gpu::handles{});
}

TEST_CASE("a thread that issues and is held by a stage is waited for, which is said") {
  gpu::reset();
  cudaStream_t mine = nullptr;
  REQUIRE(cudaStreamCreateWithPriority(&mine, cudaStreamNonBlocking, 0) == cudaSuccess);
  bool launches = false;  // what it launches behind that does not end
  SUBCASE("it launches nothing more") {}
  SUBCASE("and then launches something on a lent stream") { launches = true; }
  bool over = false;
  const captured_errors errors;
  std::atomic<bool> release{false};
  std::string seen;
  std::thread reader([&] {  // the engine goes no sooner than the stage returns
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while ((seen = errors.text()).empty() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));  // longer than grace
    release = true;
  });
  {
    one_rank run;
    struct held_stage final : executor::stage {
      held_stage(const std::atomic<bool>& on, std::function<void(cudaStream_t)> does)
          : release(on), behind(std::move(does)) {}
      void run(const executor::context& at) override {
        while (!release) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        behind(executor::native_stream(at));
      }
      const std::atomic<bool>& release;
      std::function<void(cudaStream_t)> behind;
    } stage(release, [&](cudaStream_t on) {
      if (launches) gpu::enqueue_until(on, "late", [&] { return over; });
    });
    executor::stage* const stages[] = {&stage};
    executor::options with = on_gpu({.lent = {{0, mine}}});
    with.issue = executor::issuing::thread_per_rank;
    with.deadline = std::chrono::milliseconds(200);
    with.grace = std::chrono::milliseconds(10);
    executor::engine engine({&run.view, 1}, stages, std::move(with));
    const executor::execution_error error = error_of(engine);
    CHECK(error.kind() == executor::failure::deadline);
    CHECK(error.threads_left() == 1);
  }
  reader.join();
  expect_part(seen, "stretto: waiting for a callback that does not return; ");
  CHECK((errors.text().find("does not end") != std::string::npos) == launches);
  CHECK(gpu::alive().allocations == (launches ? 1 : 0));
  CHECK(gpu::complaints().empty());
  over = true;
  cudaStreamDestroy(mine);
}

TEST_CASE(
    "an error of any call ends in one exception that names it, and everything is given back") {
  for (const cudaError_t code : {cudaErrorInvalidValue, cudaErrorIllegalAddress})
    for (int n = 1;; ++n) {
      gpu::reset(static_cast<std::uint64_t>(n));
      CAPTURE(n);
      std::string text;
      {
        one_rank run;
        gpu::fail_call(n, code);
        executor::options with = on_gpu({.timing = true});
        with.trace_steps = 1;
        with.poison = true;
        try {
          executor::engine engine({&run.view, 1}, run.stages, std::move(with));
          for (int step = 0; step < 2; ++step) engine.step();
        } catch (const executor::execution_error& caught) {
          text = caught.what();
          CHECK(caught.kind() == executor::failure::stage);
          CHECK(caught.instruction() >= 0);
          CHECK(caught.threads_left() == 0);
        } catch (const executor::cuda::error& caught) {
          text = caught.what();
          CHECK(caught.code() == code);
        }
      }
      CHECK(gpu::alive() == gpu::handles{});
      if (!gpu::has_failed()) break;
      // Where it hit the giving back, nobody is to hear of it.
      if (text.empty()) continue;
      expect_part(text, "(" + std::to_string(static_cast<int>(code)) + ")");
      expect_part(text, "what CUDA says of it");
      CHECK((text.find("must be restarted") != std::string::npos) ==
            (code == cudaErrorIllegalAddress));
    }
}
