#include <algorithm>
#include <cctype>
#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "command.hpp"
#include "errors.hpp"
#include "files.hpp"
#include "machine_options.hpp"
#include "op_ways.hpp"
#include "stretto/memory/liveness.hpp"
#include "stretto/model/transformer_chain.hpp"
#include "table.hpp"
#include "transformer_options.hpp"

namespace stretto::tool {

namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kib = 1024;  // bytes: of whole models in bytes, sums would be too large

std::int64_t in_kib(std::int64_t bytes) {
  return (bytes + kib - 1) / kib;
}

//! Layers that take the same.
struct alike {
  std::string which;  // "0", "1-30"
  int layer = -1;     // the one; -1: all that nothing else is said of
  unit_costs costs{};
};

struct costs_command {
  transformer_options of_model;
  machine_options of_machine;
  int layers = 24;
  std::string out;

  void add(CLI::App& command) {
    command.add_option("--layers", layers, "Transformer layers of the whole model")
        ->check(CLI::Range(1, 1 << 20).description(""))
        ->capture_default_str();
    of_model.add(command);
    of_machine.add(command, "neighbouring ranks and ");
    command.add_option("-o,--output", out,
                       "File to write for --layer-costs; - for standard output, without the table");
  }

  void run() {
    of_model.settle(layers, std::to_string(layers), 1);
    on_ = of_machine.settle();
    const std::vector<alike> all = kinds_of_layers();
    if (!out.empty()) write_file("-o", out, json_of(all).dump(1) + "\n");
    if (out != "-") print(all);
  }

 private:
  std::vector<alike> kinds_of_layers() const {
    if (layers == 1) return {{"0", 0, costs_of(0, 1)}};
    const int last = layers - 1;
    std::vector<alike> all{{"0", 0, costs_of(0, 3)}};
    if (layers > 2)
      all.push_back({layers == 3 ? "1" : "1-" + std::to_string(last - 1), -1, costs_of(1, 3)});
    all.push_back({std::to_string(last), last, costs_of(2, 3)});
    return all;
  }

  //! Of the layer at such a place in a pipeline with one on each rank.
  unit_costs costs_of(int rank, int ranks) const {
    const std::vector<std::int32_t> counts(static_cast<std::size_t>(ranks), 1);
    const placement where{.ranks = ranks, .chunks = 1};
    const program_chain halves = transformer_chain(of_model.model, where, rank, counts, true, on_);
    const program_chain whole = transformer_chain(of_model.model, where, rank, counts, false, on_);
    const auto time = [&](const program_chain& chain, std::size_t job) {
      const op_graph graph = graph_of(chain, std::span(chain.programs).subspan(job, 1));
      return ways_of("", graph, chain, on_, {.multiprocessors = on_.multiprocessors})
          .best()
          .makespan;
    };
    unit_costs made;
    made.forward = time(halves, 0);
    made.backward_input = time(halves, 1);
    made.backward_weight = time(halves, 2);
    const std::int64_t apart = made.backward_input + made.backward_weight;
    made.whole_saves = std::max(std::int64_t{0}, apart - time(whole, 1));
    std::vector<job_cost> kept(halves.programs.size());
    const verdict answer = memory::measure_chain(halves, {kept.data(), kept.size()});
    if (!answer.ok()) throw bad_input(std::string(memory::explain(answer, halves).view()));
    made.memory_forward = in_kib(kept[0].change);
    // Between the halves: of what the forward keeps, and of gradients.
    const std::int64_t left = in_kib(kept[0].change + kept[1].change);
    made.memory_backward_input = left - made.memory_forward;
    made.memory_backward_weight = -left;
    std::int64_t weights = of_model.model.layer_weights();
    if (rank == 0) weights += of_model.model.embedding_weights();
    if (rank + 1 == ranks) weights += of_model.model.head_weights();
    made.memory_weights = in_kib(of_model.model.state_bytes(weights));
    return made;
  }
  //! A message from one stage to the next.
  std::int64_t hop() const {
    program_chain none_yet;
    return on_.time({.message = transformer_writer(of_model.model, none_yet).message_bytes(),
                     .between_nodes = true});
  }

  //! As a shell reads it as one word.
  static std::string quoted(const std::string& path) {
    const bool plain = std::ranges::all_of(path, [](unsigned char letter) {
      return std::isalnum(letter) != 0 ||
             std::string_view("-_./+").find(static_cast<char>(letter)) != std::string_view::npos;
    });
    if (plain) return path;
    std::string text = "'";
    for (const char letter : path) text += letter == '\'' ? "'\\''" : std::string(1, letter);
    return text + "'";
  }
  static ordered_json json_of(const std::vector<alike>& all) {
    ordered_json list = ordered_json::array();
    const auto add = [&](const alike& one) {
      ordered_json entry;
      if (one.layer >= 0) entry["layer"] = one.layer;
      entry["forward"] = one.costs.forward;
      entry["backward_input"] = one.costs.backward_input;
      entry["backward_weight"] = one.costs.backward_weight;
      entry["whole_saves"] = one.costs.whole_saves;
      entry["memory_forward"] = one.costs.memory_forward;
      entry["memory_backward_input"] = one.costs.memory_backward_input;
      entry["memory_backward_weight"] = one.costs.memory_backward_weight;
      entry["memory_weights"] = one.costs.memory_weights;
      list.push_back(entry);
    };
    // Later entries win.
    for (const alike& one : all)
      if (one.layer < 0) add(one);
    for (const alike& one : all)
      if (one.layer >= 0) add(one);
    return list;
  }

  void print(const std::vector<alike>& all) const {
    const transformer& model = of_model.model;
    std::cout << layers << (layers == 1 ? " layer" : " layers") << ", each on "
              << std::max(model.tensor_parallel, model.experts.parallel) << " of "
              << of_machine.device
              << ", ns and KiB. Whole saves: what a whole\nbackward takes less than its halves. "
                 "Kept: from the forward on, and from I to W. State: weights,\ngradients and "
                 "optimizer. The first layer has the embedding, the last the head.\n\n";
    std::vector<std::vector<std::string>> rows{
        {"layer", "F", "I", "W", "whole saves", "kept", "after I", "state"}};
    for (const alike& one : all)
      rows.push_back(
          {one.which, std::to_string(one.costs.forward), std::to_string(one.costs.backward_input),
           std::to_string(one.costs.backward_weight), std::to_string(one.costs.whole_saves),
           std::to_string(one.costs.memory_forward),
           std::to_string(-one.costs.memory_backward_weight),
           std::to_string(one.costs.memory_weights)});
    std::cout << print_table(rows) << "\nBetween ranks a hop takes " << hop()
              << ". So, for what ranks and micro-batches you like:\nstretto compare --ranks "
              << std::min(layers, 8) << " --microbatches 32 --layers balanced:" << layers
              << " --layer-costs " << (out.empty() ? "FILE" : quoted(out)) << " --cost 0,0,0,"
              << hop() << '\n';
  }

  machine on_{};
};

}  // namespace

void add_costs(CLI::App& app) {
  auto* command = app.add_subcommand(
      "costs", "What each layer of a transformer takes and keeps, as --layer-costs reads it");
  const auto mine = std::make_shared<costs_command>();
  mine->add(*command);
  command->callback([mine] { mine->run(); });
}

}  // namespace stretto::tool
