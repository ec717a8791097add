// The step as a graph, on simulated GPUs: the bits and the calls of a step that is issued, and what
// is no part of one.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "cuda/executor_kernels.hpp"
#include "cuda/summing.hpp"
#include "executor/failures.hpp"
#include "executor/gathering.hpp"
#include "executor/pipeline.hpp"
#include "stretto/executor/callbacks.hpp"
#include "stretto/executor/cuda/error.hpp"
#include "stretto/executor/cuda/step_graph.hpp"
#include "stretto/executor/loopback_transport.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "support.hpp"

using namespace stretto;
using namespace stretto::test;

TEST_CASE("a graph of the step gives the bits that issuing every step gives") {
  define_executor_kernels();
  for (const layout how : {layout::serial, layout::separate})
    for (const int gpus : {1, 2})
      for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
        gpu::reset(seed, gpus);
        {
          const std::vector<plan_builder> plans = pipeline_plans(3, 4, 7, how);
          sample_stages inner(3);
          // What differs from step to step is read when it runs.
          std::int64_t step = 0;
          struct stepping final : executor::stage {
            void run(const executor::context& at) override {
              ++calls;
              gpu::enqueue(executor::native_stream(at), "stepping", [this, at] {
                executor::context now = at;
                now.step = *step;
                inner->run(now);
              });
            }
            executor::stage* inner = nullptr;
            const std::int64_t* step = nullptr;
            int calls = 0;
          } stages[3];
          std::vector<executor::stage*> pointers;
          for (std::size_t at = 0; at < 3; ++at) {
            stages[at].inner = inner.pointers[at];
            stages[at].step = &step;
            pointers.push_back(&stages[at]);
          }
          executor::options with = on_gpus(gpus);
          with.graph = executor::make_cuda_graph;
          with.graph_progress = seed % 2 == 0;
          executor::engine engine(views(plans), pointers, std::move(with));
          for (; step < 6; ++step) engine.step();
          CHECK(engine.steps() == 6);
          CHECK(inner.sums() == expected_sums(3, 4, 7, 6));
          CHECK(stages[0].calls == 2 * 8);
        }
        CHECK(gpu::alive() == gpu::handles{});
        CHECK(gpu::complaints().empty());
      }
}

namespace {

//! Whether the call asks for an event's end, or, behind that, takes away the error that there is
//! none yet.
bool is_question(std::size_t at) {
  const auto has_name = [](std::size_t call, std::string_view name) {
    return name == gpu::calls()[call].name;
  };
  return has_name(at, "cudaEventQuery") ||
         (at > 0 && has_name(at, "cudaGetLastError") && has_name(at - 1, "cudaEventQuery"));
}

}  // namespace

TEST_CASE("a replayed step is a launch on its GPU, a record and questions") {
  define_executor_kernels();
  gpu::reset();
  summing run(false);
  executor::callback_stage inner(run.callbacks);
  enqueueing_stages stages({&inner, &inner, &inner});
  executor::options with = on_gpus(1);
  with.graph = executor::make_cuda_graph;
  executor::engine engine(views(run.plans), stages.pointers, std::move(with));
  // What the graph alone launches was loaded by each rank before.
  CHECK(std::ranges::count_if(gpu::calls(), [](const gpu::call& each) {
          return each.arguments.starts_with("stretto_note_progress, ");
        }) == 3);
  for (int step = 0; step < 2; ++step) engine.step();
  const std::size_t first = gpu::calls().size();
  engine.step();
  CHECK(run.wrong == 0);
  CHECK(run.checked == 9);
  REQUIRE(gpu::calls().size() >= first + 4);
  CHECK(gpu::to_text(gpu::calls()[first]) == "cudaSetDevice(0)");
  CHECK(std::string(gpu::calls()[first + 1].name) == "cudaGraphLaunch");
  CHECK(std::string(gpu::calls()[first + 2].name) == "cudaEventRecord");
  for (std::size_t at = first + 3; at < gpu::calls().size(); ++at) CHECK(is_question(at));
}

TEST_CASE("gathers are recorded and replayed with the rest") {
  define_executor_kernels();
  gpu::reset();
  gathering run;
  executor::callback_stage inner(run.callbacks);
  enqueueing_stages stages({&inner, &inner, &inner});
  executor::options with = on_gpus(1);
  with.graph = executor::make_cuda_graph;
  executor::engine engine(views(run.plans), stages.pointers, std::move(with));
  for (int step = 0; step < 4; ++step) engine.step();
  CHECK(run.wrong == 0);
  CHECK(run.checked == 24);
  CHECK(gpu::complaints().empty());
}

TEST_CASE("a graph is launched on its GPU, whichever the thread has chosen meanwhile") {
  define_executor_kernels();
  gpu::reset(1, 3);
  {
    summing run(false);
    executor::callback_stage inner(run.callbacks);
    enqueueing_stages stages({&inner, &inner, &inner});
    executor::options with = on_gpus(2);
    with.graph = executor::make_cuda_graph;
    executor::engine engine(views(run.plans), stages.pointers, std::move(with));
    for (int step = 0; step < 4; ++step) {
      REQUIRE(cudaSetDevice(2) == cudaSuccess);
      engine.step();
    }
    CHECK(run.wrong == 0);
    CHECK(run.checked == 12);
  }
  CHECK(gpu::complaints().empty());
}

TEST_CASE("a graph whose copies would go by way of the host is refused") {
  define_executor_kernels();
  gpu::reset(1, 2, false);
  const std::vector<plan_builder> plans = pipeline_plans(3, 4, 7, layout::separate);
  sample_stages inner(3);
  enqueueing_stages stages({inner.pointers[0], inner.pointers[1], inner.pointers[2]});
  expect_part(refusal_of([&] {
                executor::options with = on_gpus(2);
                with.graph = executor::make_cuda_graph;
                executor::engine(views(plans), stages.pointers, std::move(with));
              }),
              "ranks 0 and 1 are to copy as part of a graph, but GPU 0 cannot reach the memory of "
              "GPU 1");
  // Issued one by one they do.
  executor::engine engine(views(plans), stages.pointers, on_gpus(2));
  for (int step = 0; step < 3; ++step) engine.step();
  CHECK(inner.sums() == expected_sums(3, 4, 7, 3));
  CHECK(gpu::complaints().empty());
}

TEST_CASE("graphs are refused where they cannot be, and any failing call ends in one exception") {
  define_executor_kernels();
  gpu::reset();
  summing run(false);
  executor::callback_stage inner(run.callbacks);
  enqueueing_stages stages({&inner, &inner, &inner});
  const auto refused = [&](auto change) {
    executor::options with = on_gpus(1);
    with.graph = executor::make_cuda_graph;
    change(with);
    return refusal_of(
        [&] { executor::engine(views(run.plans), stages.pointers, std::move(with)); });
  };
  expect_part(refused([](auto& with) { with.trace_steps = 1; }), "trace_steps must be 0");
  expect_part(refused([](auto& with) { with.checked = true; }), "a graph's steps are not: checked");
  expect_part(refused([](auto& with) { with.issue = executor::issuing::thread_per_rank; }),
              "recorded by the thread that calls step()");
  expect_part(refused([](auto& with) { with.wire = executor::make_loopback_transport(0); }),
              "a graph needs a transport whose operations can be recorded");
  expect_part(refused([](auto& with) { with.make_device = {}, with.wire = nullptr; }),
              "the host's cannot");
  expect_part(refused([](auto& with) { with.graph = [] { return nullptr; }; }),
              "options::graph made none");
  for (int n = 1;; ++n) {
    gpu::reset(static_cast<std::uint64_t>(n));
    CAPTURE(n);
    std::string text;
    {
      executor::options with = on_gpus(1);
      with.graph = executor::make_cuda_graph;
      gpu::fail_call(n, cudaErrorInvalidValue);
      try {
        executor::engine engine(views(run.plans), stages.pointers, std::move(with));
        try {
          for (int step = 0; step < 3; ++step) engine.step();
        } catch (const executor::execution_error& caught) {
          text = caught.what();
          CHECK(caught.threads_left() == 0);
          CHECK(error_of(engine).kind() == executor::failure::refused);
        }
      } catch (const executor::cuda::error& caught) {
        text = caught.what();
      }
    }
    CHECK(gpu::alive() == gpu::handles{});
    if (!gpu::has_failed()) break;
    if (!text.empty()) expect_part(text, "cudaErrorInvalidValue (1), what CUDA says of it");
  }
}

namespace {

//! What the step that begins with this call has called.
std::vector<std::string> calls_from(std::size_t first) {
  std::vector<std::string> made;
  for (std::size_t at = first; at < gpu::calls().size(); ++at)
    // How often it is asked whether the step is over is chance.
    if (!is_question(at)) made.push_back(gpu::to_text(gpu::calls()[at]));
  return made;
}

std::string one_text(const std::vector<std::string>& calls) {
  std::string all;
  for (const std::string& each : calls) all += each + '\n';
  return all;
}

//! The event that such a call records or waits for; -1: none.
int event_of(const std::string& call) {
  if (!call.starts_with("cudaEventRecord") && !call.starts_with("cudaStreamWaitEvent")) return -1;
  return std::stoi(call.substr(call.find("event ") + 6));
}

}  // namespace

TEST_CASE("the calls of a step of 1F1B on two ranks are those of the text, recorded or not") {
  plan_request request;
  request.stages = {{.output = 64, .stash = 128, .gradients = 64}};
  const planned made(schedule::one_f_one_b{}, {.ranks = 2, .microbatches = 2},
                     job_table(2, 1).view(), overlap::separate{}, request);
  REQUIRE(made.answer() == verdict{});
  struct idle_stage final : executor::stage {
    void run(const executor::context&) override {}
  } inner;
  enqueueing_stages stages({&inner, &inner});
  int events = 0;         // made before the second step
  std::set<int> of_plan;  // those of the plans
  const auto second_step = [&](bool graph, bool progress = false) {
    gpu::reset();
    executor::options with = on_gpus(1);
    with.poison = false;
    if (graph) with.graph = executor::make_cuda_graph;
    with.graph_progress = progress;
    executor::engine engine(made.plans(), stages.pointers, std::move(with));
    engine.step();
    events = 0;
    auto plan = made.plans().begin();
    int left = 0;
    for (const gpu::call& each : gpu::calls()) {
      // Streams of a device come first, then the events of its plan.
      if (std::string(each.name) == "cudaDeviceGetStreamPriorityRange") left = (plan++)->events;
      if (std::string(each.name) != "cudaEventCreateWithFlags") continue;
      if (left-- > 0) of_plan.insert(events);
      ++events;
    }
    const std::size_t first = gpu::calls().size();
    engine.step();
    return calls_from(first);
  };
  const std::vector<std::string> issued = second_step(false);
  const std::string text = one_text(issued);
  std::ifstream file(STRETTO_SOURCE_DIR "/tests/cuda/one_f_one_b.txt");
  std::stringstream expected;
  expected << file.rdbuf();
  CHECK_MESSAGE(text == expected.str(), text);

  // Of a graph besides: its own calls, and streams that leave the first one and come back.
  std::vector<std::string> recorded, own;
  std::set<int> recorded_events, awaited;
  int joins = 0;
  const auto is_aside = [](const std::string& name) {  // of the thread, or in beginning
    return name == "cudaSetDevice" || name == "cudaGetDevice" ||
           name == "cudaEventCreateWithFlags";
  };
  for (const std::string& each : second_step(true)) {
    const std::string name = each.substr(0, each.find('('));
    if (event_of(each) >= events)
      ++joins;
    else if (name.starts_with("cudaGraph") || name.find("Capture") != std::string::npos)
      own.push_back(name);
    else if (!is_aside(name))
      recorded.push_back(each), recorded_events.insert(event_of(each));
  }
  CHECK(own == std::vector<std::string>{"cudaStreamBeginCapture", "cudaStreamEndCapture",
                                        "cudaGraphInstantiate", "cudaGraphUpload",
                                        "cudaGraphDestroy", "cudaGraphLaunch"});
  int streams = 0;
  for (const plan_view& each : made.plans()) streams += static_cast<int>(each.streams.size());
  CHECK(joins == 1 + 3 * (streams - 1) + 1);
  // And without the records that only tell how far the step is.
  for (const std::string& each : issued)
    if (each.starts_with("cudaStreamWaitEvent")) awaited.insert(event_of(each));
  std::vector<std::string> without;
  for (const std::string& each : issued)
    if (recorded_events.count(event_of(each)) > 0 && !is_aside(each.substr(0, each.find('('))))
      without.push_back(each);
    else
      CHECK_MESSAGE(awaited.count(event_of(each)) == 0, each);
  CHECK(one_text(recorded) == one_text(without));

  // With progress, a kernel behind each instruction, before its event, and nothing else.
  std::vector<std::string> notes, others;
  std::string before;
  for (const std::string& each : second_step(true, true)) {
    const std::string name = each.substr(0, each.find('('));
    if (is_aside(name) || event_of(each) >= events || name.starts_with("cudaGraph") ||
        name.find("Capture") != std::string::npos)
      continue;
    const std::string stream = each.substr(each.rfind(' ') + 1);
    const bool is_note = each.starts_with("cudaLaunchKernelExC(stretto_note_progress");
    if (name == "cudaEventRecord" && of_plan.count(event_of(each)) > 0)
      CHECK_MESSAGE(before == stream, each);
    before = is_note ? stream : "";
    is_note ? notes.push_back(stream) : others.push_back(each);
  }
  // What is sent is on the stream that receives it.
  std::vector<std::string> expected_notes;
  const auto stream_of = [&](const plan_view& plan, const instruction& one) {
    int before = 0;
    for (int rank = 0; rank < plan.rank; ++rank)
      before += static_cast<int>(made.plans()[static_cast<std::size_t>(rank)].streams.size());
    return before + one.stream;
  };
  for (const plan_view& each : made.plans())
    for (const instruction& one : each.instructions) {
      if (one.act != action::send) {
        expected_notes.push_back(std::to_string(stream_of(each, one)) + ')');
        continue;
      }
      const plan_view& peer = made.plans()[static_cast<std::size_t>(one.peer)];
      const auto met = std::ranges::find_if(peer.instructions, [&](const instruction& other) {
        return other.act == action::receive && other.peer == each.rank;
      });
      expected_notes.push_back(std::to_string(stream_of(peer, *met)) + ')');
    }
  std::ranges::sort(notes);
  std::ranges::sort(expected_notes);
  CHECK(notes == expected_notes);
  // One piece of memory more, which is all that the numbers of the others tell.
  const auto without_memory = [](const std::vector<std::string>& all) {
    return std::regex_replace(one_text(all), std::regex("memory [0-9]+"), "memory");
  };
  CHECK(without_memory(others) == without_memory(without));
}

TEST_CASE("what asks, allocates, or copies from what may be gone is no part of a recorded step") {
  summing run(false);
  struct careless_stage final : executor::stage {
    void run(const executor::context& at) override {
      if (at.step == 1) (*does)(executor::native_stream(at));
    }
    const std::function<void(cudaStream_t)>* does = nullptr;
  } stage;
  const auto complaint_of = [&](const std::function<void(cudaStream_t)>& does) {
    gpu::reset();
    define_executor_kernels();
    stage.does = &does;
    executor::stage* const stages[] = {&stage, &stage, &stage};
    executor::options with = on_gpus(1);
    with.graph = executor::make_cuda_graph;
    std::string text;
    {
      executor::engine engine(views(run.plans), stages, std::move(with));
      engine.step();
      try {
        engine.step();
      } catch (const executor::execution_error& failed) {
        text = failed.what();
      }
    }
    CHECK(gpu::alive() == gpu::handles{});
    CHECK_FALSE(gpu::complaints().empty());
    return text + "; " + (gpu::complaints().empty() ? "" : gpu::complaints().front());
  };
  expect_part(complaint_of([](cudaStream_t) {
                void* memory = nullptr;
                executor::cuda::check(cudaMalloc(&memory, 64), "cudaMalloc");
              }),
              "cudaMalloc while a graph is recorded");
  expect_part(complaint_of([](cudaStream_t on) { static_cast<void>(cudaStreamQuery(on)); }),
              "cudaStreamQuery while a graph is recorded");
  // It would be read when the step runs, and each time again.
  expect_part(complaint_of([](cudaStream_t on) {
                static char memory[2];
                executor::cuda::check(
                    cudaMemcpyAsync(&memory[0], &memory[1], 1, cudaMemcpyDefault, on),
                    "cudaMemcpyAsync");
              }),
              "cudaMemcpyAsync is recorded from memory that may be gone when it runs");
}
