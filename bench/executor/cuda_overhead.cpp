// What the executor costs on a GPU, with stages that launch nothing: whole steps, issued and, of
// several ranks, replayed as a graph, and replayed by one that tells how far it is; of each the
// part until the GPU has the step, all that the host does but wait: of those that are issued by
// job, with its messages, of replays whole and by node of the graph. Beside it what the calls of
// CUDA take that issue such a step, and nothing else.
//
// Prints medians over many steps, of which all plans and ways have theirs in turn, some at a time,
// and says when the host was disturbed. Usage: cuda_overhead [steps] [--json FILE]
#include <dlfcn.h>

#include <algorithm>
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
};

//! The steps of some plans, done in one way.
class measured_steps {
 public:
  //! @param plans  outlive it
  measured_steps(const std::vector<plan_view>& plans, way how) : how_(how) {
    const std::vector<executor::stage*> stages(plans.size(), &stage_);
    executor::options with;
    with.make_device = [](const plan_view& plan, executor::monitor& watch) {
      return executor::make_cuda_device(plan, {}, watch);
    };
    with.wire = executor::make_cuda_loopback_transport();
    if (how != way::issued)
      with.graph = [this] { return std::make_unique<watched_graph>(launched_); };
    with.graph_progress = how == way::followed;
    engine_ = std::make_unique<executor::engine>(plans, stages, std::move(with));
    for (int step = 0; step < 3; ++step) engine_->step();
    nodes_ = graph_nodes;
  }

  //! One step before them is not counted: others have run since the last.
  void run(int steps) {
    engine_->step();
    std::vector<double> host;
    for (int step = 0; step < steps; ++step) {
      const stopwatch::time_point start = stopwatch::now();
      engine_->step();
      all_.push_back(microseconds(stopwatch::now() - start));
      host.push_back(microseconds((how_ == way::issued ? stage_.called : launched_) - start));
    }
    rounds_.push_back(bench::quantile(host, 0.5));
    host_.insert(host_.end(), host.begin(), host.end());
  }

  step_times times() const { return {bench::quantile(all_, 0.5), bench::quantile(host_, 0.5)}; }
  std::size_t nodes() const { return nodes_; }  //!< of the graph
  //! Of the host's time, the least and the most.
  std::pair<double, double> rounds() const {
    const auto [least, most] = std::minmax_element(rounds_.begin(), rounds_.end());
    return {*least, *most};
  }

 private:
  way how_;
  empty_stage stage_;
  stopwatch::time_point launched_;
  std::unique_ptr<executor::engine> engine_;
  std::size_t nodes_ = 0;
  std::vector<double> all_, host_, rounds_;
};

//! The calls of CUDA that a step's jobs and messages need: an event behind a job; for a message
//! waits for the job before it and by the job behind it, a kernel that copies, and events by which
//! others know that it is over of both sides.
class bare_calls {
 public:
  bare_calls(std::int64_t jobs, std::int64_t messages)
      : jobs_(static_cast<std::size_t>(jobs)), messages_(static_cast<std::size_t>(messages)) {
    for (event& each : jobs_) each = bench::make_event();
    for (message& each : messages_) each = {bench::make_event(), bench::make_event()};
  }

  void run(int steps) {
    step();
    for (int at = 0; at < steps; ++at) times_.push_back(step());
  }
  double median() const { return bench::quantile(times_, 0.5); }

 private:
  double step() {
    const stopwatch::time_point start = stopwatch::now();
    for (const event& each : jobs_) record(each, computes_);
    for (const message& each : messages_) {
      wait(messages_go_, jobs_.front());
      executor::cuda::check(bench::launch_nothing(messages_go_.get()), "a kernel");
      record(each.sent, messages_go_);
      record(each.received, messages_go_);
      wait(computes_, each.received);
    }
    const double made = microseconds(stopwatch::now() - start);
    for (const stream* each : {&computes_, &messages_go_})
      executor::cuda::check(cudaStreamSynchronize(each->get()), "cudaStreamSynchronize");
    return made;
  }
  using event = executor::cuda::owned_event;
  using stream = executor::cuda::owned_stream;
  static void record(const event& what, const stream& on) {
    executor::cuda::check(cudaEventRecord(what.get(), on.get()), "cudaEventRecord");
  }
  static void wait(const stream& on, const event& what) {
    executor::cuda::check(cudaStreamWaitEvent(on.get(), what.get(), cudaEventWaitDefault),
                          "cudaStreamWaitEvent");
  }

  struct message {
    event sent, received;
  };
  stream computes_ = bench::make_stream(0), messages_go_ = bench::make_stream(0);
  std::vector<event> jobs_;  // that each is over
  std::vector<message> messages_;
  std::vector<double> times_;
};

//! A row: a pipeline, and its steps in every way that it has.
struct row {
  row(const char* called, int ranks, int microbatches, std::int64_t elements)
      : name(called), built(pipeline_plans(ranks, microbatches, elements, layout::separate)) {
    for (const plan_view& each : plans)
      for (const instruction& one : each.instructions) {
        jobs += one.act == action::run ? 1 : 0;
        messages += one.act == action::send ? 1 : 0;
      }
    calls = std::make_unique<bare_calls>(jobs, messages);
    ways.push_back(std::make_unique<measured_steps>(plans, way::issued));
    // The graph of one rank has no node: its stages launch nothing, and there is no message.
    if (ranks == 1) return;
    ways.push_back(std::make_unique<measured_steps>(plans, way::replayed));
    ways.push_back(std::make_unique<measured_steps>(plans, way::followed));
  }

  const char* name;
  std::vector<plan_builder> built;
  std::vector<plan_view> plans = views(built);
  std::int64_t jobs = 0, messages = 0;
  std::unique_ptr<bare_calls> calls;
  std::vector<std::unique_ptr<measured_steps>> ways;
};

void tell(const row& of, std::int64_t steps, bench::report& to) {
  const step_times issued = of.ways[0]->times();
  const double by_job = issued.host / static_cast<double>(of.jobs);
  const double calls = of.calls->median() / static_cast<double>(of.jobs);
  nlohmann::ordered_json made{{"plan", of.name},
                              {"jobs", of.jobs},
                              {"messages", of.messages},
                              {"steps", steps},
                              {"issued_us", bench::rounded(issued.all)},
                              {"issued_host_us", bench::rounded(issued.host)},
                              {"issued_host_us_by_job", bench::rounded(by_job)},
                              {"calls_us_by_job", bench::rounded(calls)}};
  std::printf("%-28s %5lld %9lld %9.1f %7.1f %7.2f %7.2f", of.name, static_cast<long long>(of.jobs),
              static_cast<long long>(of.messages), issued.all, issued.host, by_job, calls);
  const char* const keys[] = {"issued", "replayed", "followed"};
  for (std::size_t at = 1; at < of.ways.size(); ++at) {
    const step_times seen = of.ways[at]->times();
    const std::size_t nodes = of.ways[at]->nodes();
    const double by_node = seen.host / static_cast<double>(nodes);
    const std::string key = keys[at];
    made[key + "_us"] = bench::rounded(seen.all);
    made[key + "_host_us"] = bench::rounded(seen.host);
    made[key + "_nodes"] = nodes;
    made[key + "_host_us_by_node"] = bench::rounded(by_node);
    std::printf(" %9.1f %7.1f %7zu %8.3f", seen.all, seen.host, nodes, by_node);
  }
  std::puts("");
  to.row(std::move(made));
}

//! When steps that do the same took the host unlike times.
void tell_disturbance(const row& of, bench::report& to) {
  const auto [least, most] = of.ways[0]->rounds();
  if (most <= 1.15 * least) return;
  char text[200];
  std::snprintf(
      text, sizeof text,
      "the host was disturbed: a job of \"%s\" took it between %.2f and %.2f us, by rounds",
      of.name, least / static_cast<double>(of.jobs), most / static_cast<double>(of.jobs));
  to.note(text);
}

void measure(int steps, bench::report& to) {
  const int rounds = std::min(20, steps);
  const int at_a_time = (steps + rounds - 1) / rounds;
  std::printf("medians over %d steps, %d at a time, microseconds\n", rounds * at_a_time, at_a_time);
  std::printf("%-28s %5s %9s %9s %7s %7s %7s %9s %7s %7s %8s %9s %7s %7s %8s\n", "plan", "jobs",
              "messages", "issued", "host's", "by job", "calls", "replayed", "host's", "nodes",
              "by node", "followed", "host's", "nodes", "by node");
  // Each where it stays: what measures its steps refers to its plans.
  std::vector<std::unique_ptr<row>> rows;
  rows.push_back(std::make_unique<row>("1 rank, 64 micro-batches", 1, 64, 1));
  rows.push_back(std::make_unique<row>("4 ranks on one GPU, 4 bytes", 4, 16, 1));
  rows.push_back(std::make_unique<row>("4 ranks on one GPU, 1 MiB", 4, 16, 1 << 18));
  for (int round = 0; round < rounds; ++round)
    for (const auto& each : rows) {
      for (const auto& steps_of : each->ways) steps_of->run(at_a_time);
      each->calls->run(at_a_time);
    }
  for (const auto& each : rows) tell(*each, rounds * at_a_time, to);
  for (const auto& each : rows) tell_disturbance(*each, to);
}

}  // namespace

int main(int count, char** arguments) {
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);  // four ranks have more streams than 8
  std::setvbuf(stdout, nullptr, _IOLBF, 0);        // in a pipe, too
  std::vector<std::string> words(arguments + 1, arguments + count);
  try {
    const std::string path = bench::take_option(words, "--json");
    const int steps = words.empty() ? 600 : std::atoi(words[0].c_str());
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
