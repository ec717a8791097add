// What the executor costs on a GPU, with stages that launch nothing: the host's time to issue an
// instruction of one rank, and whole steps, issued and replayed as a graph.
//
// Prints medians over many steps. Usage: cuda_overhead [steps]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "executor/pipeline.hpp"
#include "stretto/executor/cuda/device.hpp"
#include "stretto/executor/cuda/loopback_transport.hpp"
#include "stretto/executor/cuda/step_graph.hpp"
#include "stretto/executor/engine.hpp"

using namespace stretto;
using namespace stretto::test;
using stopwatch = std::chrono::steady_clock;

namespace {

struct empty_stage final : executor::stage {
  void run(const executor::context&) override {}
};

double microseconds(stopwatch::duration length) {
  return std::chrono::duration<double, std::micro>(length).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

//! The calls that issue a step of one rank; its end is not in it.
double measure_issue(const plan_view& plan, int steps) {
  executor::monitor watch(1);
  const auto wire = executor::make_cuda_loopback_transport();
  const auto on = executor::make_cuda_device(plan, {}, watch);
  wire->open({&plan, 1}, watch);
  wire->attach(plan.rank, *on);
  empty_stage stage;
  executor::runner runner(plan, {on.get(), wire.get(), &stage, &watch}, 0, {});
  std::vector<double> times;
  for (int step = 0; step < steps; ++step) {
    watch.begin_step();
    const stopwatch::time_point start = stopwatch::now();
    runner.issue(step);
    times.push_back(microseconds(stopwatch::now() - start));
    const stopwatch::time_point limit = start + std::chrono::seconds(10);
    auto seen = executor::monitor::outcome::late;
    while (seen == executor::monitor::outcome::late && stopwatch::now() < limit) {
      on->poll();
      seen = watch.wait_until(stopwatch::now());
    }
    if (seen != executor::monitor::outcome::ended) std::exit(1);
  }
  return median(times);
}

double measure_step(const std::vector<plan_view>& plans, int steps, bool graph) {
  empty_stage stage;
  const std::vector<executor::stage*> stages(plans.size(), &stage);
  executor::options with;
  with.make_device = [](const plan_view& plan, executor::monitor& watch) {
    return executor::make_cuda_device(plan, {}, watch);
  };
  with.wire = executor::make_cuda_loopback_transport();
  if (graph) with.graph = executor::make_cuda_graph;
  executor::engine engine(plans, stages, std::move(with));
  for (int step = 0; step < 3; ++step) engine.step();
  std::vector<double> times;
  for (int step = 0; step < steps; ++step) {
    const stopwatch::time_point start = stopwatch::now();
    engine.step();
    times.push_back(microseconds(stopwatch::now() - start));
  }
  return median(times);
}

}  // namespace

int main(int count, char** arguments) {
  const int steps = count > 1 ? std::atoi(arguments[1]) : 300;
  if (steps < 1) {
    std::fprintf(stderr, "usage: cuda_overhead [steps]; steps at least 1\n");
    return 2;
  }
  if (executor::cuda_device_count() == 0) {
    std::puts("not measured: this process finds no GPU");
    return 0;
  }
  std::printf("medians over %d steps, microseconds\n", steps);
  std::printf("%-36s %13s %20s %12s %9s\n", "plan", "instructions", "issuing, by instr.", "step",
              "replayed");
  const auto row = [&](const char* name, int ranks, int microbatches, std::int64_t elements) {
    const std::vector<plan_builder> built =
        pipeline_plans(ranks, microbatches, elements, layout::separate);
    const std::vector<plan_view> plans = views(built);
    std::size_t instructions = 0;
    for (const plan_view& each : plans) instructions += each.instructions.size();
    std::printf("%-36s %13zu", name, instructions);
    if (ranks == 1)
      std::printf(" %20.2f", measure_issue(plans[0], steps) / static_cast<double>(instructions));
    else
      std::printf(" %20s", "");
    std::printf(" %12.1f %9.1f\n", measure_step(plans, steps, false),
                measure_step(plans, steps, true));
  };
  row("1 rank, 64 micro-batches", 1, 64, 1);
  row("4 ranks on one GPU, 4 bytes", 4, 16, 1);
  row("4 ranks on one GPU, 1 MiB", 4, 16, 1 << 18);
  return 0;
}
