// Several ranks of a process on simulated GPUs: messages and sums between them have the bits that
// the host's streams give, whatever order the GPUs' streams run in; and a missing event shows.
#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <numeric>
#include <sstream>
#include <tuple>

#include "cuda/executor_kernels.hpp"
#include "cuda/gated.hpp"
#include "cuda/summing.hpp"
#include "executor/failures.hpp"
#include "executor/gathering.hpp"
#include "executor/pipeline.hpp"
#include "stretto/executor/callbacks.hpp"
#include "stretto/executor/cuda/error.hpp"
#include "stretto/executor/cuda/handles.hpp"
#include "stretto/executor/cuda/loopback_transport.hpp"
#include "stretto/executor/cuda/step_graph.hpp"
#include "stretto/executor/trace.hpp"
#include "stretto/lowering/streams/separate.hpp"
#include "stretto/plan/planned.hpp"
#include "stretto/schedule/dualpipe.hpp"
#include "stretto/schedule/interleaved.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "stretto/schedule/zbv.hpp"
#include "support.hpp"
#include "support/faulty_transport.hpp"

using namespace stretto;
using namespace stretto::test;

namespace {

std::vector<float> sums_on_gpus(const std::vector<plan_view>& plans, int gpus, int steps,
                                bool checked = false) {
  sample_stages inner(static_cast<int>(plans.size()));
  enqueueing_stages stages(inner.pointers);
  executor::options with = on_gpus(gpus);
  with.checked = checked;
  executor::engine engine(plans, stages.pointers, std::move(with));
  for (int step = 0; step < steps; ++step) engine.step();
  return inner.sums();
}

//! Mixes what each job reads into what it writes, and keeps it by job.
struct mixing_stage final : executor::stage {
  using key = std::tuple<std::int64_t, job_kind, int, int, int>;
  void run(const executor::context& at) override {
    std::uint64_t mixed =
        static_cast<std::uint64_t>(at.what.stage * 1000 + at.what.microbatch) * 16 +
        static_cast<std::uint64_t>(at.what.kind);
    for (const executor::bound_buffer& each : at.buffers) {
      if (each.mode == access::write) continue;
      for (const std::byte one : each.data)
        mixed = (mixed ^ static_cast<std::uint64_t>(one)) * 0x100000001b3U;
    }
    for (const executor::bound_buffer& each : at.buffers) {
      if (each.mode == access::read) continue;
      for (std::size_t one = 0; one < each.data.size(); ++one)
        each.data[one] = static_cast<std::byte>((mixed >> (one % 8 * 8)) + one);
      // What is summed must be numbers: how a sum mixes the bits of NaNs is nobody's promise.
      if (each.role == buffer_role::collective)
        for (float& one : at.view<float>(buffer_role::collective, each.stage))
          one = static_cast<float>(mixed % 1000) / 7;
    }
    const std::lock_guard lock(mutex);
    seen[{at.step, at.what.kind, at.what.stage, at.what.microbatch, at.what.slice}] = mixed;
  }
  std::mutex mutex{};
  std::map<key, std::uint64_t> seen{};
};

template <class Schedule>
void compare(const Schedule& schedule, const shape& sizes,
             const memory::offload_window& offload = {}) {
  CAPTURE(std::string(Schedule::name));
  const placement where = place(schedule.placed(), sizes);
  plan_request request;
  request.stages = {{.output = 96, .stash = 200, .gradients = 64}};
  request.offload = offload;
  const planned made(schedule, sizes, job_table(sizes.ranks, where.chunks).view(),
                     overlap::separate{}, request);
  REQUIRE(made.answer() == verdict{});
  define_executor_kernels();
  const auto run = [&](bool on_host, int gpus, bool graph = false) {
    mixing_stage inner;
    const std::vector<executor::stage*> all(made.plans().size(), &inner);
    enqueueing_stages stages(all);
    executor::options with = on_host ? executor::options{} : on_gpus(gpus);
    with.poison = true;
    if (graph) with.graph = executor::make_cuda_graph;
    executor::engine engine(made.plans(), on_host ? all : stages.pointers, std::move(with));
    for (int step = 0; step < 3; ++step) engine.step();
    return inner.seen;
  };
  const auto expected = run(true, 0);
  // All steps are the same, and a graph calls the stages for two.
  std::map<mixing_stage::key, std::uint64_t> replayed;
  for (const auto& [key, mixed] : expected) {
    const auto& [step, kind, stage, microbatch, slice] = key;
    CHECK(mixed == expected.at({0, kind, stage, microbatch, slice}));
    if (step < 2) replayed[key] = mixed;
  }
  for (const std::uint64_t seed : {1U, 2U, 3U})
    for (const int gpus : {1, 3}) {
      CAPTURE(seed);
      gpu::reset(seed, gpus);
      CHECK(run(false, gpus) == expected);
      gpu::reset(seed, gpus);
      CHECK(run(false, gpus, true) == replayed);
      CHECK(gpu::alive() == gpu::handles{});
      CHECK(gpu::complaints().empty());
    }
}

}  // namespace

TEST_CASE("pipelines have the bits of the plain computation, on one GPU or on several") {
  define_executor_kernels();
  for (const int ranks : {2, 4})
    for (const layout how : {layout::serial, layout::separate})
      for (const int gpus : {1, 2})
        for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U}) {
          gpu::reset(seed, gpus);
          const std::vector<plan_builder> plans = pipeline_plans(ranks, 4, 7, how);
          const bool checked = seed % 2 == 0;
          CHECK(sums_on_gpus(views(plans), gpus, 3, checked) == expected_sums(ranks, 4, 7, 3));
          CHECK(gpu::alive() == gpu::handles{});
          CHECK(gpu::complaints().empty());
        }
}

TEST_CASE("a sender writes to its buffer again when the message is taken, and not before") {
  define_executor_kernels();
  constexpr int messages = 4;
  plan_builder sender(0, 2, {"compute", "send"});
  plan_builder receiver(1, 2, {"compute", "receive"});
  const int out = sender.add_buffer(buffer_role::output, 0, 0, 4);
  int sent = -1;
  for (int i = 0; i < messages; ++i) {
    const int in = receiver.add_buffer(buffer_role::input, 1, i, 4);
    const int written = sender.run({0, i, 0, job_kind::forward}, 0,
                                   {{out, buffer_role::output, access::write}}, {sent});
    sent = sender.send({0, i, 0, job_kind::send_forward}, 1, 1, out, {written});
    const int there = receiver.receive({1, i, 0, job_kind::receive_forward}, 1, 0, in);
    receiver.run({1, i, 0, job_kind::forward}, 0, {{in, buffer_role::input, access::read}},
                 {there});
  }
  sender.end();
  receiver.end();
  int wrong = 0;
  executor::job_callbacks callbacks;
  callbacks.forward = [&](const executor::context& at) {
    const auto value = static_cast<float>(at.what.microbatch + 1);
    if (at.rank == 0)
      at.view<float>(buffer_role::output)[0] = value;
    else
      wrong += at.view<float>(buffer_role::input)[0] == value ? 0 : 1;
  };
  executor::callback_stage inner(callbacks);
  enqueueing_stages stages({&inner, &inner});
  for (const bool graph : {false, true})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      gpu::reset(seed);
      executor::options with = on_gpus(1);
      if (graph) with.graph = executor::make_cuda_graph;
      const plan_view plans[] = {sender.view(), receiver.view()};
      executor::engine engine(plans, stages.pointers, std::move(with));
      for (int step = 0; step < 3; ++step) engine.step();
    }
  CHECK(wrong == 0);
}

TEST_CASE("streams that do nothing but meet are one, others meet by events") {
  define_executor_kernels();
  // Three ranks; on each stream 0 computes. A message's job writes what the message before it had.
  struct message {
    int from, to, sent_on, received_on;
  };
  const auto build = [](const std::vector<message>& all, int computes_on) {
    std::vector<plan_builder> plans;
    std::vector<int> out, sent(3, -1);
    for (int rank = 0; rank < 3; ++rank) {
      plans.push_back(plan_builder(rank, 3, {"compute", "one", "other"}));
      out.push_back(plans.back().add_buffer(buffer_role::output, rank, 0, 4));
    }
    for (int i = 0; i < static_cast<int>(all.size()); ++i) {
      const message& one = all[static_cast<std::size_t>(i)];
      plan_builder& from = plans[static_cast<std::size_t>(one.from)];
      plan_builder& to = plans[static_cast<std::size_t>(one.to)];
      const int mine = out[static_cast<std::size_t>(one.from)];
      int& before = sent[static_cast<std::size_t>(one.from)];
      const int next = one.from + 1;  // the stage, whichever rank has it
      const int in = to.add_buffer(buffer_role::input, next, i, 4);
      const int written = from.run({one.from, i, 0, job_kind::forward}, computes_on,
                                   {{mine, buffer_role::output, access::write}}, {before});
      before =
          from.send({one.from, i, 0, job_kind::send_forward}, one.sent_on, one.to, mine, {written});
      const int there =
          to.receive({next, i, 0, job_kind::receive_forward}, one.received_on, one.from, in);
      to.run({next, i, 0, job_kind::forward}, 0, {{in, buffer_role::input, access::read}}, {there});
    }
    for (plan_builder& each : plans) each.end();
    return plans;
  };
  cudaStream_t lent = nullptr;
  const struct {
    const char* what;
    std::vector<message> all;
    int apart;  // messages whose streams meet by events
    int computes_on = 0, gpus = 1;
    bool lends = false;
  } cases[] = {{"one to one", {{0, 1, 1, 1}, {0, 1, 1, 1}, {0, 1, 1, 1}}, 0},
               {"to two ranks, on a stream each", {{0, 1, 1, 1}, {0, 2, 2, 1}, {0, 1, 1, 1}}, 0},
               {"from two ranks, on one stream", {{0, 2, 1, 1}, {1, 2, 1, 1}, {0, 2, 1, 1}}, 0},
               {"sent on two streams", {{0, 1, 1, 1}, {0, 1, 2, 1}, {0, 1, 1, 1}}, 0},
               {"a chain", {{0, 1, 1, 1}, {1, 2, 2, 1}, {0, 1, 1, 1}}, 0},
               {"to two ranks, on one stream", {{0, 1, 1, 1}, {0, 2, 1, 1}, {0, 1, 1, 1}}, 3},
               {"received on two streams", {{0, 1, 1, 1}, {0, 1, 1, 2}, {0, 1, 1, 1}}, 3},
               {"sends and receives on one stream", {{0, 1, 1, 1}, {1, 2, 1, 1}, {0, 1, 1, 1}}, 1},
               {"computes on it, too", {{0, 1, 1, 1}, {0, 1, 1, 1}, {0, 1, 1, 1}}, 3, 1},
               {"on two GPUs", {{0, 1, 1, 1}, {0, 2, 2, 1}, {0, 1, 1, 1}}, 2, 0, 2},
               {"lent", {{0, 1, 1, 1}, {0, 1, 1, 1}, {1, 2, 2, 1}}, 2, 0, 1, true}};
  for (const auto& each : cases) {
    CAPTURE(each.what);
    const std::vector<plan_builder> plans = build(each.all, each.computes_on);
    int planned_waits = 0;
    for (const plan_view& plan : views(plans))
      for (const instruction& one : plan.instructions) planned_waits += one.wait_count;
    int wrong = 0, read = 0;
    executor::job_callbacks callbacks;
    callbacks.forward = [&](const executor::context& at) {
      const float value = static_cast<float>(at.what.microbatch + 1);
      for (const executor::bound_buffer& one : at.buffers)
        if (one.mode == access::write)
          at.view<float>(buffer_role::output)[0] = value;
        else
          ++read, wrong += at.view<float>(buffer_role::input)[0] != value;
    };
    executor::callback_stage inner(callbacks);
    enqueueing_stages stages({&inner, &inner, &inner});
    for (const bool graph : {false, true})
      for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        gpu::reset(seed, each.gpus);
        REQUIRE(cudaStreamCreateWithPriority(&lent, cudaStreamNonBlocking, 0) == cudaSuccess);
        executor::options with = on_gpus(each.gpus);
        if (graph) with.graph = executor::make_cuda_graph;
        if (each.lends)
          with.make_device = [lent](const plan_view& plan, executor::monitor& watch) {
            executor::cuda_settings settings;
            if (plan.rank == 0) settings.lent = {{1, lent}};
            return executor::make_cuda_device(plan, settings, watch);
          };
        {
          executor::engine engine(views(plans), stages.pointers, std::move(with));
          const std::size_t first = gpu::calls().size();
          engine.step();
          const auto waits = std::count_if(
              gpu::calls().begin() + static_cast<std::ptrdiff_t>(first), gpu::calls().end(),
              [](const gpu::call& one) { return one.name == std::string("cudaStreamWaitEvent"); });
          CHECK(waits == planned_waits + 2 * each.apart);
          for (int step = 1; step < 3; ++step) engine.step();
        }
        static_cast<void>(cudaStreamDestroy(lent));
        CHECK(gpu::alive() == gpu::handles{});
        CHECK(gpu::complaints().empty());
      }
    CHECK(wrong == 0);
    CHECK(read == 2 * 10 * 3 * 3);
  }
}

TEST_CASE("traces contradict no order that the plans demand") {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    gpu::reset(seed, 3);
    const std::vector<plan_builder> plans = pipeline_plans(3, 3, 7, layout::separate);
    sample_stages inner(3);
    enqueueing_stages stages(inner.pointers);
    executor::options with = on_gpus(1);
    // Each rank's clock is set by round trips of its own; this one's are slow.
    with.make_device = [](const plan_view& plan, executor::monitor& watch) {
      gpu::answer_late(std::chrono::microseconds(plan.rank == 1 ? 2000 : 0));
      return executor::make_cuda_device(plan, {.device = 2, .timing = true}, watch);
    };
    with.trace_steps = 2;
    executor::engine engine(views(plans), stages.pointers, std::move(with));
    // So that the ends of steps tell less of it than they would.
    gpu::answer_late(std::chrono::microseconds(300));
    for (int step = 0; step < 3; ++step) engine.step();
    const std::vector<plan_view> given = views(plans);
    const std::vector<executor::trace_record> all = engine.trace();
    std::size_t count = 0;
    for (const plan_view& each : given) count += 2 * each.instructions.size();
    CHECK(all.size() == count);
    const auto broken = executor::check_against(given, all);
    CHECK_MESSAGE(!broken, (broken ? broken->text : std::string()));
  }
}

TEST_CASE("a trace's times are off by no more than they say, which a step's end and issue limit") {
  gpu::reset(1, 3);
  const std::vector<plan_builder> plans = pipeline_plans(1, 3, 7, layout::separate);
  struct watching final : executor::stage {
    void run(const executor::context& at) override {
      gpu::enqueue(executor::native_stream(at), "watching", [this, of = at.what] {
        times[std::string(to_text(of).view())] =
            std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
      });
    }
    std::map<std::string, std::int64_t> times{};
  } stage;
  executor::stage* const stages[] = {&stage};
  executor::options with = on_gpu({.device = 2, .timing = true});
  with.trace_steps = 1;
  gpu::answer_late(std::chrono::microseconds(2000));
  executor::engine engine(views(plans), stages, std::move(with));
  for (int step = 0; step < 3; ++step) engine.step();
  std::size_t seen = 0;
  for (const executor::trace_record& one : engine.trace()) {
    const auto found = stage.times.find(std::string(
        to_text(plans[0].instructions[static_cast<std::size_t>(one.instruction)].what).view()));
    if (found == stage.times.end()) continue;
    ++seen;
    CHECK(one.start - one.off <= found->second);
    CHECK(found->second <= one.end + one.off);
    CHECK(one.off > 0);
  }
  CHECK(seen == stage.times.size());
}

TEST_CASE("without any one of the plan's events bits come out wrong in some order of streams") {
  const std::vector<plan_builder> whole = pipeline_plans(2, 3, 7, layout::separate);
  const std::vector<float> expected = expected_sums(2, 3, 7, 2);
  int removed = 0;
  for (std::size_t rank = 0; rank < whole.size(); ++rank)
    for (std::size_t at = 0; at < whole[rank].instructions.size(); ++at) {
      // The end's waits say when the step is over, which the stages' sums do not show.
      if (whole[rank].instructions[at].act == action::end_step ||
          whole[rank].instructions[at].wait_count == 0)
        continue;
      std::vector<plan_builder> plans = whole;
      plans[rank].instructions[at].wait_count = 0;
      ++removed;
      bool wrong = false;
      for (std::uint64_t seed = 1; seed <= 100 && !wrong; ++seed) {
        gpu::reset(seed);
        wrong = sums_on_gpus(views(plans), 1, 2) != expected;
      }
      CAPTURE(rank);
      CAPTURE(at);
      CHECK(wrong);
    }
  CHECK(removed >= 8);
}

TEST_CASE("schedules give every job the bytes that the host's streams give it") {
  compare(schedule::one_f_one_b{}, {.ranks = 3, .microbatches = 5});
  compare(schedule::interleaved{}, {.ranks = 3, .microbatches = 6, .chunks = 2});
  compare(schedule::zbv{}, {.ranks = 3, .microbatches = 6, .chunks = 2});
  compare(schedule::dualpipe{}, {.ranks = 4, .microbatches = 8});
  compare(schedule::one_f_one_b{}, {.ranks = 3, .microbatches = 5}, memory::offload_all);
}

TEST_CASE("sums over ranks are in their order, by one kernel") {
  define_executor_kernels();
  for (const bool wide : {false, true})
    for (const int gpus : {1, 3})
      for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
        gpu::reset(seed, gpus);
        {
          summing run(wide);
          executor::callback_stage inner(run.callbacks);
          enqueueing_stages stages({&inner, &inner, &inner});
          executor::engine engine(views(run.plans), stages.pointers, on_gpus(gpus));
          for (int step = 0; step < 3; ++step) engine.step();
          CHECK(run.wrong == 0);
          CHECK(run.checked == 9);
        }
        CHECK(gpu::alive() == gpu::handles{});
        CHECK(gpu::complaints().empty());
      }
}

TEST_CASE("gathers copy every member's part to all others, whether one GPU or several") {
  define_executor_kernels();
  for (const int gpus : {1, 3})
    for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
      gpu::reset(seed, gpus);
      {
        gathering run;
        executor::callback_stage inner(run.callbacks);
        enqueueing_stages stages({&inner, &inner, &inner});
        executor::engine engine(views(run.plans), stages.pointers, on_gpus(gpus));
        const std::size_t first = gpu::calls().size();
        for (int step = 0; step < 3; ++step) engine.step();
        CHECK(run.wrong == 0);
        CHECK(run.checked == 18);
        // Two gathers a step, of three members whose parts go to two others each, by a kernel where
        // they begin as it wants.
        const auto copies = [&](std::string_view by) {
          return std::count_if(
              gpu::calls().begin() + static_cast<std::ptrdiff_t>(first), gpu::calls().end(),
              [&](const gpu::call& each) { return gpu::to_text(each).starts_with(by); });
        };
        if (gpus == 1) {
          CHECK(copies("cudaMemcpyAsync(") + copies("cudaLaunchKernelExC(stretto_copy_bytes, ") ==
                3 * 2 * 6);
          CHECK(copies("cudaMemcpyAsync(") > 0);
          CHECK(copies("cudaLaunchKernelExC(stretto_copy_bytes, ") > 0);
        } else {
          CHECK(copies("cudaMemcpyPeerAsync(") == 3 * 2 * 6);
        }
      }
      CHECK(gpu::alive() == gpu::handles{});
      CHECK(gpu::complaints().empty());
    }
}

TEST_CASE("members on one GPU gather from one another on the stream of a third one's") {
  define_executor_kernels();
  constexpr int ranks = 3;
  for (const bool peers : {true, false})
    for (const std::int64_t part : {16, 20}) {  // with and without a kernel's alignment
      gpu::reset(1, 2, peers);
      {
        std::vector<plan_builder> plans;
        for (int rank = 0; rank < ranks; ++rank) {
          plan_builder plan(rank, ranks, {"compute", "collectives"});
          plan.add_group({0, 1, 2}, 0, false);
          const int weights = plan.add_buffer(buffer_role::weights, 0, 0, ranks * part);
          const int put = plan.run({0, 0, 0, job_kind::unshard}, 0,
                                   {{weights, buffer_role::weights, access::write}});
          const int gathered = plan.all_gather(0, 1, weights, {put});
          plan.run({0, 0, 0, job_kind::optimizer}, 0,
                   {{weights, buffer_role::weights, access::read}}, {gathered});
          plans.push_back(plan.end());
        }
        int right = 0;
        executor::job_callbacks callbacks;
        callbacks.unshard = [&](const executor::context& at) {
          const auto own = at.find(buffer_role::weights)
                               .subspan(static_cast<std::size_t>(at.rank * part),
                                        static_cast<std::size_t>(part));
          std::ranges::fill(own, static_cast<std::byte>(at.rank + 1));
        };
        callbacks.optimizer = [&](const executor::context& at) {
          const auto all = at.find(buffer_role::weights);
          for (std::size_t byte = 0; byte < all.size(); ++byte)
            right +=
                all[byte] == static_cast<std::byte>(1 + static_cast<std::int64_t>(byte) / part);
        };
        executor::callback_stage inner(callbacks);
        enqueueing_stages stages({&inner, &inner, &inner});
        executor::options with;
        with.make_device = [](const plan_view& plan, executor::monitor& watch) {
          return executor::make_cuda_device(plan, {.device = plan.rank == 0 ? 0 : 1}, watch);
        };
        with.wire = executor::make_cuda_loopback_transport();
        executor::engine engine(views(plans), stages.pointers, std::move(with));
        for (int step = 0; step < 2; ++step) engine.step();
        CHECK(right == 2 * ranks * ranks * part);
      }
      CHECK(gpu::alive() == gpu::handles{});
      CHECK(gpu::complaints().empty());
    }
}

TEST_CASE("who waits for a sum to start waits for its kernel's blocks, by the launch's own event") {
  define_executor_kernels();
  struct probe final : executor::stage {
    void run(const executor::context& at) override {
      if (at.what.kind != job_kind::forward) return;
      budget = at.sm_budget;
      // No kernel, and so nothing that a graph has right behind the start of one.
      executor::cuda::check(cudaMemsetAsync(memory, 0, 4, executor::native_stream(at)),
                            "cudaMemsetAsync");
    }
    int budget = 0;
    void* memory = nullptr;
  };
  // Of the second step, which is recorded where there is a graph, older drivers are not told.
  const auto tells = [](int driver, bool graph) {
    gpu::reset();
    gpu::set_driver(driver);
    const gated_sum plans(4);
    const auto memory = executor::cuda::make_device_memory(4);
    probe stage;
    stage.memory = memory.get();
    executor::stage* const stages[] = {&stage, &stage};
    executor::options with = on_gpus(1);
    if (graph) with.graph = executor::make_cuda_graph;
    executor::engine engine(plans.given(), stages, std::move(with));
    for (int step = 0; step < 2; ++step) engine.step();
    CHECK(stage.budget == 132 - 16);
    std::vector<bool> told;
    for (const gpu::call& each : gpu::calls())
      if (each.arguments.starts_with("stretto_sum_floats, 16 blocks, stream 1"))
        told.push_back(each.arguments.ends_with(" as its blocks run"));
    return told;
  };
  for (const int driver : {12020, 12030, 12080, 12090, 13000}) {
    CAPTURE(driver);
    CHECK(tells(driver, false) == std::vector{driver >= 12030, driver >= 12030});
    CHECK(tells(driver, true) == std::vector{driver >= 12030, driver >= 12090});
    CHECK(gpu::complaints().empty());
  }
}

TEST_CASE("where a GPU reaches no further one, messages go by the host, and sums are refused") {
  define_executor_kernels();
  for (const cudaError_t code : {cudaErrorTooManyPeers, cudaErrorPeerAccessUnsupported}) {
    gpu::reset(1, 3);
    {
      const std::vector<plan_builder> plans = pipeline_plans(3, 4, 7, layout::separate);
      sample_stages inner(3);
      enqueueing_stages stages(inner.pointers);
      gpu::fail_call(2, code, "cudaDeviceEnablePeerAccess");
      executor::engine engine(views(plans), stages.pointers, on_gpus(3));
      CHECK(gpu::has_failed());
      CHECK(cudaGetLastError() == cudaSuccess);  // or the first launch would be told of it
      for (int step = 0; step < 3; ++step) engine.step();
      CHECK(inner.sums() == expected_sums(3, 4, 7, 3));
    }
    gpu::reset(1, 3);
    summing run(false);
    executor::callback_stage inner(run.callbacks);
    enqueueing_stages stages({&inner, &inner, &inner});
    gpu::fail_call(3, code, "cudaDeviceEnablePeerAccess");
    expect_part(
        refusal_of([&] { executor::engine(views(run.plans), stages.pointers, on_gpus(3)); }),
        " sum, but GPU 0 cannot reach the memory of GPU 2");
    CHECK(gpu::alive() == gpu::handles{});
    CHECK(gpu::complaints().empty());
  }
}

TEST_CASE("what the transport cannot do is refused before any step") {
  define_executor_kernels();
  summing run(false);
  executor::callback_stage inner(run.callbacks);
  enqueueing_stages stages({&inner, &inner, &inner});
  gpu::reset(1, 3, false);
  expect_part(refusal_of([&] { executor::engine(views(run.plans), stages.pointers, on_gpus(3)); }),
              "ranks 0 and 1 sum, but GPU 0 cannot reach the memory of GPU 1");
  gpu::reset();
  expect_part(refusal_of([&] {
                executor::options with = on_gpus(1);
                with.issue = executor::issuing::thread_per_rank;
                executor::engine(views(run.plans), stages.pointers, std::move(with));
              }),
              "issuing::caller");
  expect_part(refusal_of([&] {
                executor::options with = on_gpus(1);
                with.wire = nullptr;
                executor::engine(views(run.plans), stages.pointers, std::move(with));
              }),
              "must hold a transport for GPUs");
  expect_part(refusal_of([&] {
                executor::options with = on_gpus(1);
                with.make_device = {};
                executor::engine(views(run.plans), stages.pointers, std::move(with));
              }),
              "rank 0 is not on a GPU");
  expect_part(refusal_of([] { executor::make_cuda_loopback_transport({.blocks = 0}); }), "block");
  CHECK(gpu::alive() == gpu::handles{});
}

TEST_CASE("a message or a sum of the wrong size is told by channel or group, as on the host") {
  define_executor_kernels();
  gpu::reset(1, 2);
  {
    std::vector<plan_builder> plans;
    for (int r = 0; r < 2; ++r) {
      plan_builder plan(r, 2, {"compute"});
      plan.add_group({0, 1}, 4, false);
      const int moved = plan.add_buffer(buffer_role::output, r, 0, 32);
      r == 0 ? plan.send({0, 0, 0, job_kind::send_forward}, 0, 1, moved)
             : plan.receive({1, 0, 0, job_kind::receive_forward}, 0, 0, moved);
      plan.all_reduce(0, 0, plan.add_buffer(buffer_role::collective, 0, 0, 16));
      plans.push_back(plan.end());
    }
    const auto text_with = [&](int operation) {
      sample_stages inner(2);
      enqueueing_stages stages(inner.pointers);
      executor::options with = on_gpus(2);
      with.wire = test_support::make_faulty_transport(
          std::move(with.wire), {test_support::mishap::wrong_size, 1, operation});
      executor::engine engine(views(plans), stages.pointers, std::move(with));
      return std::string(error_of(engine).what());
    };
    expect_part(text_with(0),
                "channel 0 -> 1: sizes differ: send 0SEND_F0 of 32 bytes (rank 0, instruction 0, "
                "step 0) meets receive 1RECV_F0 of 31 bytes (rank 1, instruction 0, step 0)");
    expect_part(
        text_with(1),
        "group 0: sizes differ: 0ALL_REDUCE0 (rank 1, instruction 1, step 0) holds 15 bytes, "
        "the group sums 16");
  }
  CHECK(gpu::alive() == gpu::handles{});
}

TEST_CASE("an error of any call between ranks ends in one exception, and all is given back") {
  define_executor_kernels();
  for (int n = 1;; ++n) {
    gpu::reset(static_cast<std::uint64_t>(n), 2);
    CAPTURE(n);
    std::string text;
    {
      summing run(false);
      executor::callback_stage inner(run.callbacks);
      enqueueing_stages stages({&inner, &inner, &inner});
      gpu::fail_call(n, cudaErrorInvalidValue);
      try {
        executor::engine engine(views(run.plans), stages.pointers, on_gpus(2));
        engine.step();
      } catch (const executor::execution_error& caught) {
        text = caught.what();
        CHECK(caught.instruction() >= 0);
        CHECK(caught.threads_left() == 0);
      } catch (const executor::cuda::error& caught) {
        text = caught.what();
      }
    }
    CHECK(gpu::alive() == gpu::handles{});
    if (!gpu::has_failed()) break;
    if (!text.empty()) expect_part(text, "cudaErrorInvalidValue (1), what CUDA says of it");
  }
}
