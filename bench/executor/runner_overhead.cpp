// What the executor itself costs, with stages that do nothing.
//
//   issuing    time of the thread that walks the plans, per instruction, while the streams run what
//              it issues; and alone, on a device whose streams swallow everything
//   hand-over  from one thread that waits to another, there and back: the operating system's part
//   step       a whole step of all ranks, per instruction: mostly hand-overs; the same with
//              buffered messages, and from an engine that issues by a thread for each rank, or by
//              its caller
//   checked    what looking for races adds to issuing, when it is asked for
//
// Prints medians over many steps. Usage: runner_overhead [steps]
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "executor/pipeline.hpp"
#include "stretto/executor/engine.hpp"
#include "stretto/executor/host_device.hpp"
#include "stretto/executor/loopback_transport.hpp"

using namespace stretto;
using namespace stretto::test;
using stopwatch = std::chrono::steady_clock;

namespace {

double nanoseconds(stopwatch::duration length) {
  return std::chrono::duration<double, std::nano>(length).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

struct empty_stage final : executor::stage {
  void run(const executor::context&) override {}
};

//! Swallows all commands: what is left is the runner's and the transport's walk.
class swallowing_device final : public executor::device {
 public:
  explicit swallowing_device(const plan_view& plan)
      : streams_(static_cast<int>(plan.streams.size())),
        memory_(static_cast<std::size_t>(plan.arena_bytes + plan.host_bytes)),
        arena_bytes_(static_cast<std::size_t>(plan.arena_bytes)) {}
  void enqueue(int, const executor::command& work) override { last_ = work.ticket; }
  void record(int, int event, std::int64_t) override { last_ = event; }
  void wait(int, int event, std::int64_t) override { last_ = event; }
  void end_step(int, std::int64_t, executor::monitor& watch) override { watch.rank_ended(); }
  void submit() override {}
  std::span<std::byte> arena() override { return std::span(memory_).first(arena_bytes_); }
  std::span<std::byte> host_memory() override { return std::span(memory_).subspan(arena_bytes_); }
  executor::stream_handle stream(int index) const override { return {index, 0, nullptr}; }
  int streams() const override { return streams_; }
  executor::progress progress_of(int) const override { return {}; }
  void wake() noexcept override {}
  int join(executor::time_point) noexcept override { return 0; }

 private:
  int streams_;
  std::vector<std::byte> memory_;
  std::size_t arena_bytes_;
  volatile std::int64_t last_ = 0;
};

std::int64_t count_of(const std::vector<plan_view>& plans) {
  std::int64_t count = 0;
  for (const plan_view& each : plans) count += static_cast<std::int64_t>(each.instructions.size());
  return count;
}

struct result {
  double issue = 0;
  double step = 0;
};

//! Runners on devices of the given kind; measured are the calls that issue, and whole steps.
result measure(const std::vector<plan_view>& plans, int steps, bool host, int capacity) {
  executor::monitor watch(static_cast<int>(plans.size()));
  const auto wire = executor::make_loopback_transport(capacity);
  wire->open(plans, watch);
  empty_stage stage;
  std::vector<std::unique_ptr<executor::runner>> runners;
  std::vector<std::unique_ptr<executor::device>> devices;
  int threads = 0;
  for (const plan_view& plan : plans) threads += static_cast<int>(plan.streams.size());
  for (const plan_view& plan : plans) {
    if (host)
      devices.push_back(executor::make_host_device(plan, {.threads = threads}, watch));
    else
      devices.push_back(std::make_unique<swallowing_device>(plan));
    const executor::runner::parts parts{devices.back().get(), wire.get(), &stage, &watch};
    runners.push_back(std::make_unique<executor::runner>(plan, parts, 0, executor::random_delay{}));
  }
  std::vector<double> issues;
  std::vector<double> whole;
  const auto count = static_cast<double>(count_of(plans));
  for (int step = 0; step < steps; ++step) {
    watch.begin_step();
    const stopwatch::time_point start = stopwatch::now();
    for (const auto& each : runners) each->issue(step);
    const stopwatch::time_point issued = stopwatch::now();
    if (host) watch.wait_until(stopwatch::now() + std::chrono::minutes(1));
    const stopwatch::time_point ended = stopwatch::now();
    issues.push_back(nanoseconds(issued - start) / count);
    whole.push_back(nanoseconds(ended - start) / count);
  }
  return {median(issues), median(whole)};
}

double measure_engine(const std::vector<plan_view>& plans, int steps, executor::issuing issue,
                      bool swallowed = false, bool checked = false) {
  empty_stage stage;
  const std::vector<executor::stage*> stages(plans.size(), &stage);
  executor::options with;
  with.issue = issue;
  with.checked = checked;
  if (swallowed)
    with.make_device = [](const plan_view& plan, executor::monitor&) {
      return std::make_unique<swallowing_device>(plan);
    };
  executor::engine engine(plans, stages, std::move(with));
  std::vector<double> whole;
  for (int step = 0; step < steps; ++step) {
    const stopwatch::time_point start = stopwatch::now();
    engine.step();
    whole.push_back(nanoseconds(stopwatch::now() - start));
  }
  return median(whole) / static_cast<double>(count_of(plans));
}

//! One thread wakes another, which wakes the first: half of that.
double measure_hand_over(int turns) {
  std::atomic<int> ball{0};
  std::thread other([&] {
    for (int turn = 0; turn < turns; ++turn) {
      ball.wait(2 * turn);
      ball.store(2 * turn + 2);
      ball.notify_one();
    }
  });
  std::vector<double> times;
  for (int turn = 0; turn < turns; ++turn) {
    const stopwatch::time_point start = stopwatch::now();
    ball.store(2 * turn + 1);
    ball.notify_one();
    ball.wait(2 * turn + 1);
    times.push_back(nanoseconds(stopwatch::now() - start) / 2);
  }
  other.join();
  return median(times);
}

}  // namespace

int main(int count, char** arguments) {
  const int steps = count > 1 ? std::atoi(arguments[1]) : 1000;
  if (steps < 1) {
    std::fprintf(stderr, "usage: runner_overhead [steps]; steps at least 1\n");
    return 2;
  }
  std::printf("medians over %d steps, ns per instruction; %u cores\n", steps,
              std::thread::hardware_concurrency());
  std::printf("%-34s %7s %7s %9s %9s %11s %9s %9s\n", "plan", "walk", "issue", "step", "buffered",
              "per-rank", "caller", "checked");
  const auto row = [&](const char* name, int ranks, int microbatches, layout how) {
    const std::vector<plan_builder> built = pipeline_plans(ranks, microbatches, 1, how);
    const std::vector<plan_view> plans = views(built);
    const result walk = measure(plans, steps, false, 0);
    const result host = measure(plans, steps, true, 0);
    const result buffered = measure(plans, steps, true, microbatches);
    const double by_ranks = measure_engine(plans, steps, executor::issuing::thread_per_rank);
    const double by_caller = measure_engine(plans, steps, executor::issuing::caller);
    const auto issued = [&](bool checked) {
      return measure_engine(plans, steps, executor::issuing::caller, true, checked);
    };
    const double checked = issued(true) - issued(false);
    std::printf("%-34s %7.0f %7.0f %9.0f %9.0f %11.0f %9.0f %9.0f\n", name, walk.issue, host.issue,
                host.step, buffered.step, by_ranks, by_caller, checked);
  };
  row("1 rank, 64 micro-batches, 1 stream", 1, 64, layout::serial);
  row("2 ranks, 64 micro-batches, serial", 2, 64, layout::serial);
  row("4 ranks, 16 micro-batches, serial", 4, 16, layout::serial);
  row("4 ranks, 16 micro-batches, streams", 4, 16, layout::separate);
  row("4 ranks, 64 micro-batches, streams", 4, 64, layout::separate);
  std::printf("hand-over between two threads: %.0f ns\n", measure_hand_over(20 * steps));
  return 0;
}
