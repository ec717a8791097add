// What the executor costs on a GPU, with stages that launch nothing: whole steps, issued and, of
// several ranks, replayed as a graph, and replayed by one that tells how far it is; of each the
// part until the GPU has the step, all that the host does but wait: of those that are issued by
// job, with its messages, of replays whole and by node of the graph.
//
// Prints medians over many steps. Usage: cuda_overhead [steps] [--json FILE]
#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../gpu/gpu.hpp"
#include "executor/pipeline.hpp"
#include "stretto/executor/cuda/device.hpp"
#include "stretto/executor/cuda/loopback_transport.hpp"
#include "stretto/executor/cuda/step_graph.hpp"
#include "stretto/executor/engine.hpp"

using namespace stretto;
using namespace stretto::test;
using stopwatch = std::chrono::steady_clock;

namespace {

std::size_t graph_nodes = 0;  // of the last graph that was instantiated

}  // namespace

//! Stands before the runtime's own, to which it passes on what it is given: a step's graph is gone
//! when it can be launched.
extern "C" cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph,
                                            unsigned long long flags) {
  static const auto own =
      reinterpret_cast<decltype(&cudaGraphInstantiate)>(dlsym(RTLD_NEXT, "cudaGraphInstantiate"));
  if (own == nullptr) return cudaErrorSharedObjectSymbolNotFound;
  if (const cudaError_t code = cudaGraphGetNodes(graph, nullptr, &graph_nodes)) return code;
  return own(made, graph, flags);
}

namespace {

struct empty_stage final : executor::stage {
  void run(const executor::context&) override { called = stopwatch::now(); }
  stopwatch::time_point called{};  // last: a step's last job has no message behind it
};

double microseconds(stopwatch::duration length) {
  return std::chrono::duration<double, std::micro>(length).count();
}

enum class way : std::uint8_t { issued, replayed, followed };

//! A graph of the step that keeps when its last launch returned.
class watched_graph final : public executor::step_graph {
 public:
  explicit watched_graph(stopwatch::time_point& launched) : launched_(launched) {}
  void begin(std::span<const std::unique_ptr<executor::device>> on) override { own_->begin(on); }
  void end() override { own_->end(); }
  void cancel() noexcept override { own_->cancel(); }
  void launch() override {
    own_->launch();
    launched_ = stopwatch::now();
  }
  bool is_over() override { return own_->is_over(); }

 private:
  std::unique_ptr<executor::step_graph> own_ = executor::make_cuda_graph();
  stopwatch::time_point& launched_;
};

struct step_times {
  double all = 0;
  double host = 0;  // until all is issued, or the replay launched
  std::size_t nodes = 0;
  double by_node() const { return host / static_cast<double>(nodes); }
};

step_times measure_step(const std::vector<plan_view>& plans, int steps, way how) {
  empty_stage stage;
  const std::vector<executor::stage*> stages(plans.size(), &stage);
  executor::options with;
  with.make_device = [](const plan_view& plan, executor::monitor& watch) {
    return executor::make_cuda_device(plan, {}, watch);
  };
  with.wire = executor::make_cuda_loopback_transport();
  stopwatch::time_point launched;
  if (how != way::issued)
    with.graph = [&launched] { return std::make_unique<watched_graph>(launched); };
  with.graph_progress = how == way::followed;
  executor::engine engine(plans, stages, std::move(with));
  for (int step = 0; step < 3; ++step) engine.step();
  std::vector<double> times, of_host;
  for (int step = 0; step < steps; ++step) {
    const stopwatch::time_point start = stopwatch::now();
    engine.step();
    times.push_back(microseconds(stopwatch::now() - start));
    of_host.push_back(microseconds((how == way::issued ? stage.called : launched) - start));
  }
  return {bench::quantile(times, 0.5), bench::quantile(of_host, 0.5), graph_nodes};
}

void measure(int steps, bench::report& to) {
  std::printf("medians over %d steps, microseconds\n", steps);
  std::printf("%-28s %5s %9s %9s %7s %7s %9s %7s %7s %8s %9s %7s %7s %8s\n", "plan", "jobs",
              "messages", "issued", "host's", "by job", "replayed", "host's", "nodes", "by node",
              "followed", "host's", "nodes", "by node");
  const auto row = [&](const char* name, int ranks, int microbatches, std::int64_t elements) {
    const std::vector<plan_builder> built =
        pipeline_plans(ranks, microbatches, elements, layout::separate);
    const std::vector<plan_view> plans = views(built);
    std::int64_t jobs = 0;
    std::int64_t messages = 0;
    for (const plan_view& each : plans)
      for (const instruction& one : each.instructions) {
        jobs += one.act == action::run ? 1 : 0;
        messages += one.act == action::send ? 1 : 0;
      }
    const step_times issued = measure_step(plans, steps, way::issued);
    const double by_job = issued.host / static_cast<double>(jobs);
    nlohmann::ordered_json made{{"plan", name},
                                {"jobs", jobs},
                                {"messages", messages},
                                {"steps", steps},
                                {"issued_us", bench::rounded(issued.all)},
                                {"issued_host_us", bench::rounded(issued.host)},
                                {"issued_host_us_by_job", bench::rounded(by_job)}};
    std::printf("%-28s %5lld %9lld %9.1f %7.1f %7.2f", name, static_cast<long long>(jobs),
                static_cast<long long>(messages), issued.all, issued.host, by_job);
    // The graph of one rank has no node: its stages launch nothing, and there is no message.
    if (ranks > 1) {
      for (const auto& [replay, how] :
           {std::pair{"replayed", way::replayed}, std::pair{"followed", way::followed}}) {
        const step_times seen = measure_step(plans, steps, how);
        const std::string key = replay;
        made[key + "_us"] = bench::rounded(seen.all);
        made[key + "_host_us"] = bench::rounded(seen.host);
        made[key + "_nodes"] = seen.nodes;
        made[key + "_host_us_by_node"] = bench::rounded(seen.by_node());
        std::printf(" %9.1f %7.1f %7zu %8.3f", seen.all, seen.host, seen.nodes, seen.by_node());
      }
    }
    std::puts("");
    to.row(std::move(made));
  };
  row("1 rank, 64 micro-batches", 1, 64, 1);
  row("4 ranks on one GPU, 4 bytes", 4, 16, 1);
  row("4 ranks on one GPU, 1 MiB", 4, 16, 1 << 18);
}

}  // namespace

int main(int count, char** arguments) {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);  // four ranks have more streams than 8
  std::setvbuf(stdout, nullptr, _IOLBF, 0);        // in a pipe, too
  std::vector<std::string> words(arguments + 1, arguments + count);
  try {
    const std::string path = bench::take_option(words, "--json");
    const int steps = words.empty() ? 300 : std::atoi(words[0].c_str());
    if (steps < 1 || words.size() > 1)
      throw std::invalid_argument("usage: cuda_overhead [steps] [--json FILE]; steps at least 1");
    if (bench::there_is_no_gpu()) return 0;
    bench::report made("overhead", bench::about_gpu());
    bench::clock_check clock;
    measure(steps, made);
    clock.tell(made);
    made.write(path);
  } catch (const std::exception& wrong) {
    std::fprintf(stderr, "cuda_overhead: %s\n", wrong.what());
    return 1;
  }
}
