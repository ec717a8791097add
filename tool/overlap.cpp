#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command.hpp"
#include "errors.hpp"
#include "files.hpp"
#include "machine_options.hpp"
#include "op_ways.hpp"
#include "stretto/memory/estimate.hpp"
#include "stretto/model/machine.hpp"
#include "stretto/model/op_graph.hpp"
#include "stretto/model/op_replay.hpp"
#include "stretto/model/transformer/chain.hpp"
#include "stretto/plan/report.hpp"
#include "stretto/schedule/one_f_one_b.hpp"
#include "stretto/schedule/paired_1f1b.hpp"
#include "table.hpp"
#include "transformer_options.hpp"

namespace stretto::tool {

namespace {

using nlohmann::ordered_json;

struct overlap_command {
  transformer_options of_model;
  machine_options of_machine;
  int layers = 1;
  int ranks = 4;
  int microbatches = 16;
  int outstanding = 0;
  std::string format = "table";
  std::string trace;

  void add(CLI::App& command) {
    of_model.model.tensor_parallel = 2;
    of_model.add(command);
    of_machine.add(command);
    const auto count = [&](const char* option, int& value, const char* says, int least, int most) {
      command.add_option(option, value, says)
          ->check(CLI::Range(least, most).description(""))
          ->capture_default_str();
    };
    count("--layers", layers, "Transformer layers of a stage, the model's first", 1, 16);
    count("--ranks", ranks, "Of the pipeline that is replayed", 1, 1024);
    count("--microbatches", microbatches, "Of the same", 1, 65536);
    count("--outstanding", outstanding,
          "Most collectives under way at once; orders with more are left out; 0: any", 0, 1 << 20);
    command.add_option("--format", format, "table or json")
        ->check(CLI::IsMember({"table", "json"}));
    command.add_option("--trace", trace,
                       "Write the shortest backward beside forward for chrome://tracing; - for "
                       "standard output, without the table");
  }

  void run() {
    of_model.settle(layers, std::to_string(layers), 1);
    of_model.refuse_long_ring(layers);
    if (of_machine.network > 0 && of_model.devices() == 1)
      throw bad_option("--network", std::to_string(of_machine.network),
                       "has a meaning only with --tensor-parallel, --context-parallel or "
                       "--expert-parallel");
    on_ = of_machine.settle();
    of_model.refuse_machine(on_);
    with_.multiprocessors = on_.multiprocessors;
    with_.outstanding = outstanding;
    // The middle one of three ranks: neither embedding nor head, but the model's first layers.
    const std::vector<std::int32_t> counts{0, layers, layers};
    chain_ = transformer_chain(of_model.model, {.ranks = 3, .chunks = 1}, 1,
                               transformer_parts(counts), false, on_);
    of_model.refuse_huge(chain_);
    const op_graph forward = graph_of(chain_, std::span(chain_.programs).subspan(0, 1));
    const op_graph backward = graph_of(chain_, std::span(chain_.programs).subspan(1, 1));
    const ordered_job first = ways_of("forward", forward, chain_, on_, with_);
    const ordered_job second = ways_of("backward", backward, chain_, on_, with_);
    const std::int64_t apart = first.best().makespan + second.best().makespan;
    const ordered_job both = ways_of("backward beside forward", side_by_side(backward, forward),
                                     chain_, on_, with_, &apart);
    if (!trace.empty()) write_file("--trace", trace, trace_of(both.best()));
    if (trace == "-") return;
    print({first, second, both});
  }

 private:
  //! A forward, a backward, and both beside one another, each in its shortest order.
  struct pair_times {
    std::int64_t forward, backward, both;

    explicit pair_times(const std::array<ordered_job, 3>& jobs)
        : forward(jobs[0].best().makespan),
          backward(jobs[1].best().makespan),
          both(jobs[2].best().makespan) {}
    std::int64_t saved() const { return forward + backward - both; }
    std::int64_t shorter() const { return std::max<std::int64_t>(1, std::min(forward, backward)); }
    //! Of the shorter, in percent: what --hides takes.
    double hides() const {
      return 100 * static_cast<double>(saved()) / static_cast<double>(shorter());
    }
  };
  struct replayed_step {
    std::int64_t takes = 0;
    std::int64_t peak = 0;  // bytes that forwards have saved, on the rank with the most
  };
  //! The pipeline without and with pairs, which keep more forwards waiting for their backward.
  std::array<replayed_step, 2> replayed_steps(const pair_times& pair) const {
    const std::int64_t f = pair.forward;
    const std::int64_t b = pair.backward;
    unit_costs costs{.forward = f, .backward_input = b, .backward_weight = 0};
    const shape sizes{.ranks = ranks, .microbatches = microbatches};
    job_table table(ranks, 1, costs);
    for (int rank = 0; rank < ranks; ++rank) {
      // The layer's own program.
      if (const verdict answer = memory::estimate(chain_, rank, table); !answer.ok())
        throw bad_input(std::string(memory::explain(answer, chain_).view()));
      table.at(rank, 0, job_kind::forward).time = f;
      table.at(rank, 0, job_kind::backward).time = b;
    }
    // Pairs hide whole percents; between two of them the step is on the line that joins theirs.
    const auto percent = static_cast<int>(100 * pair.saved() / pair.shorter());
    const double beyond = static_cast<double>(100 * pair.saved() % pair.shorter()) /
                          static_cast<double>(pair.shorter());
    const auto replayed = [&](const auto& schedule) {
      job_lists lists(ranks, schedule.capacity(sizes));
      job_sink out = lists.sink();
      (void)schedule.emit(sizes, table.view(), out);
      const replay_input input{
          lists.rows(), place(schedule.placed(), sizes), microbatches, 1, table.view(), false, {}};
      std::vector<rank_report> reports(static_cast<std::size_t>(ranks));
      replayed_step made{measure(input, reports).makespan};
      for (const rank_report& each : reports) made.peak = std::max(made.peak, each.peak);
      return made;
    };
    table.pair_hides = percent;
    std::array<replayed_step, 2> made{replayed(schedule::one_f_one_b{}),
                                      replayed(schedule::paired_1f1b{})};
    if (beyond == 0) return made;
    table.pair_hides = percent + 1;
    const std::int64_t more = replayed(schedule::paired_1f1b{}).takes;
    made[1].takes -= std::llround(beyond * static_cast<double>(made[1].takes - more));
    return made;
  }

  void print(const std::array<ordered_job, 3>& jobs) const {
    const pair_times pair(jobs);
    const auto [plain, paired] = replayed_steps(pair);
    if (format == "json") {
      ordered_json text{{"device", of_machine.device},
                        {"tensor_parallel", of_model.model.tensor_parallel},
                        {"context_parallel", of_model.model.context_parallel},
                        {"expert_parallel", of_model.model.experts.parallel}};
      for (const ordered_job& job : jobs) {
        ordered_json ways = ordered_json::array();
        for (const ordered_ops& way : job.ways)
          ways.push_back({{"order", way.name},
                          {"ns", way.makespan},
                          {"hidden", job.report(way.makespan).hidden()},
                          {"ops", way.order.size()}});
        text["jobs"].push_back({{"job", job.name},
                                {"compute_ns", job.computes},
                                {"communication_ns", job.communicates},
                                {"bound_ns", job.bound},
                                {"ceiling", job.ceiling()},
                                {"orders", ways}});
      }
      text["hides"] = pair.hides();
      text["step"] = {{"ranks", ranks},
                      {"microbatches", microbatches},
                      {"1f1b_ns", plain.takes},
                      {"1f1b_bytes", plain.peak},
                      {"paired_1f1b_ns", paired.takes},
                      {"paired_1f1b_bytes", paired.peak}};
      std::cout << text.dump(1) << '\n';
      return;
    }
    const auto ms = [](std::int64_t ns) {
      char text[32];
      std::snprintf(text, sizeof text, "%.3f", static_cast<double>(ns) / 1e6);
      return std::string(text);
    };
    const auto mib = [](std::int64_t bytes) {
      char text[32];
      std::snprintf(text, sizeof text, "%.1f", static_cast<double>(bytes) / (1 << 20));
      return std::string(text);
    };
    std::cout << "A stage of " << layers << (layers == 1 ? " layer" : " layers") << " on "
              << of_model.devices() << " of "
              << of_machine.device << ", ms. Hidden: "
              << "what communication adds no time for;\nat most: what streams and "
              << "multiprocessors allow, whatever the order and the pieces.\n\n";
    std::vector<std::vector<std::string>> rows{
        {"job", "order", "compute", "comm.", "takes", "hidden", "at most"}};
    for (const ordered_job& job : jobs)
      for (const ordered_ops& way : job.ways)
        rows.push_back({&way == &job.ways.front() ? job.name : "", way.name, ms(job.computes),
                        ms(job.communicates), ms(way.makespan),
                        percent(job.report(way.makespan).hidden()), percent(job.ceiling())});
    std::cout << print_table(rows) << "\nThe longer half of such a pair hides "
              << percent(pair.hides() / 100) << " of the shorter (--hides "
              << static_cast<int>(pair.hides()) << ").\nA step of " << ranks
              << (ranks == 1 ? " rank and " : " ranks and ") << microbatches
              << (microbatches == 1 ? " micro-batch: 1f1b " : " micro-batches: 1f1b ")
              << ms(plain.takes) << ", paired_1f1b " << ms(paired.takes) << ": "
              << (paired.takes < plain.takes ? "pairs pay" : "pairs gain nothing")
              << ".\nActivations on the rank with the most, MiB: " << mib(plain.peak)
              << " and with pairs " << mib(paired.peak) << ".\n";
  }

  std::string trace_of(const ordered_ops& way) const {
    std::vector<op_span> spans(way.graph.nodes.size());
    (void)replay_ops(way.graph, way.order, on_.multiprocessors, spans);
    ordered_json events = ordered_json::array();
    for (int stream = 0; stream < stream_traits<stream_type>::count; ++stream) {
      bool used = false;
      for (const op_node& node : way.graph.nodes) used = used || node.stream == stream;
      if (used)
        events.push_back(
            {{"ph", "M"},
             {"name", "thread_name"},
             {"pid", 0},
             {"tid", stream},
             {"args",
              {{"name", stream_traits<stream_type>::name(static_cast<stream_type>(stream))}}}});
    }
    for (std::size_t at = 0; at < spans.size(); ++at) {
      const op_node& node = way.graph.nodes[at];
      std::string name(chain_.ops[static_cast<std::size_t>(node.op)].name);
      if (node.pieces > 1)
        name += " " + std::to_string(node.piece + 1) + "/" + std::to_string(node.pieces);
      events.push_back({{"ph", "X"},
                        {"name", name},
                        {"cat", node.job == 0 ? "backward" : "forward"},
                        {"pid", 0},
                        {"tid", node.stream},
                        {"ts", static_cast<double>(spans[at].start) / 1000},
                        {"dur", static_cast<double>(spans[at].end - spans[at].start) / 1000}});
    }
    return ordered_json{{"displayTimeUnit", "ms"}, {"traceEvents", events}}.dump() + "\n";
  }

  machine on_{};
  overlap::look_ahead_options with_{};
  program_chain chain_;
};

}  // namespace

void add_overlap(CLI::App& app) {
  auto* command = app.add_subcommand(
      "overlap",
      "How much of a layer's communication, over its devices, those that share its sequences or "
      "have its experts, lies behind computation");
  command->footer(
      std::string(
          "hidden: of the communication, the part for which the job is no longer than its "
          "computation\n"
          "alone; at most: the same of any order. Below 0 % it made the job longer than one after "
          "the\n"
          "other: a kernel that begins while communication holds multiprocessors has the rest of "
          "them\n"
          "alone from its beginning to its end, however soon the communication has ended "
          "(--copy-engine:\n"
          "it holds none).\n") +
      exit_codes);
  const auto mine = std::make_shared<overlap_command>();
  mine->add(*command);
  command->callback([mine] { mine->run(); });
}

}  // namespace stretto::tool
