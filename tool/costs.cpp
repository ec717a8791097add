#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "command.hpp"
#include "errors.hpp"
#include "files.hpp"
#include "layer_costs.hpp"
#include "machine_options.hpp"
#include "measured_stages.hpp"
#include "numbers.hpp"
#include "recomputation.hpp"
#include "slice_options.hpp"
#include "stretto/assignment/described.hpp"
#include "stretto/model/transformer/chain.hpp"
#include "table.hpp"
#include "trace_options.hpp"
#include "transformer_layers.hpp"
#include "transformer_options.hpp"

namespace stretto::tool {

namespace {

struct costs_command {
  transformer_options of_model;
  slice_options of_slices;
  machine_options of_machine;
  int layers = 24;
  bool ends_apart = false;
  int host_link = 0;
  int node_ranks = 0;
  recomputation recompute;
  trace_options trace;
  int ranks = 0;
  std::string out;

  void add(CLI::App& command) {
    command.add_option("--layers", layers, "Transformer layers of the whole model")
        ->check(CLI::Range(1, assignment::described::most_layers).description(""))
        ->capture_default_str();
    command.add_flag("--ends-apart", ends_apart,
                     "The embedding and the head are layers of their own, as E and L of "
                     "Megatron-LM's layouts");
    of_model.add(command);
    of_model.add_state(command);
    of_model.add_dense(command);
    of_model.add_head(command,
                      "Cuts the head's vocabulary in so many pieces, each a layer of its own "
                      "behind the others, as L of Megatron-LM's layouts is the last of them "
                      "(default 1: whole)");
    of_slices.add(command);
    of_machine.add(command, "neighbouring ranks and ");
    command
        .add_option("--host-link", host_link,
                    "GB/s each way to the host's memory, for --offload's copies (default: the "
                    "device's; of a measured machine none is known)")
        ->check(CLI::Range(1, 1 << 20).description(""));
    recompute.add(command, ", where --recompute of other commands says that they run again");
    const auto of_layers =
        command.get_options([](const CLI::Option* one) { return one->get_name() != "--help"; });
    auto* const measured = trace.add(command,
                                     "Instead: what each stage took, as a layer of its own, in the "
                                     "steps of a file that the executor has written (the "
                                     "trainer's trace.json)");
    for (CLI::Option* one : of_layers) measured->excludes(one);
    command.add_option("--ranks", ranks, "Of the pipeline in --trace [as many as share no jobs]")
        ->check(CLI::Range(1, 1 << 20).description(""))
        ->needs(measured);
    command
        .add_option("--node-ranks", node_ranks,
                    "Ranks of a node, in their order: only messages to another node go over "
                    "--network (default: all do); of --trace, what these took stands by itself")
        ->check(CLI::Range(1, most_node_ranks).description(""));
    command.add_option("-o,--output", out,
                       "File to write for --layer-costs; - for standard output, without the table");
  }

  void run() {
    if (!trace.file.empty()) return tell_measured();
    of_model.settle(layers, std::to_string(layers), 1);
    of_model.refuse_dense(layers);
    of_model.refuse_long_ring(1 + of_model.model.further_tokens);
    slices_ = of_slices.cut(of_model.model);
    recompute.settle(of_model.model, static_cast<int>(slices_.size()));
    if (recompute.by_some_layers())
      throw bad_option("--recompute", recompute.text(),
                       "which layers are the first of a stage is not known here");
    on_ = of_machine.settle();
    of_model.refuse_machine(on_);
    if (host_link > 0) on_.to_host = host_link;
    if (node_ranks > 0 && on_.network == 0)
      throw bad_option("--node-ranks", std::to_string(node_ranks),
                       "without --network all hops take the same");
    const std::vector<layer_entry> all = all_layers().kinds(slices_);
    refuse_long(all);
    if (!out.empty())
      write_file("-o", out,
                 layer_costs_file(all, {dealt(), ends_apart, true, sums(), gathers(), second(),
                                        all_layers().shared_ends(false),
                                        all_layers().shared_ends(true),
                                        all_layers().reduce_ends()}));
    if (out != "-") print(all);
  }

 private:
  transformer_layers all_layers() const { return {of_model, layers, ends_apart, on_, recompute}; }
  //! Layers in the file.
  int dealt() const { return all_layers().dealt(); }
  bool sums() const { return of_model.replicas > 1; }
  bool gathers() const { return of_model.model.weight_shards > 1; }
  bool second() const { return recompute.apart(); }

  void tell_measured() const {
    const measured_stages found(measured_trace("--trace", trace.file, ranks, trace.worker),
                                node_ranks);
    const auto stages = static_cast<int>(found.stages.size());
    if (!out.empty()) write_file("-o", out, layer_costs_file(found.stages, {stages}));
    if (out != "-") print(found);
  }
  //! @throws bad_input for what --layer-costs would not read
  void refuse_long(const std::vector<layer_entry>& all) const {
    const auto refuse = [&](const std::string& what, std::int64_t number, const char* unit) {
      if (number > most_cost)
        throw bad_input("--hidden " + std::to_string(of_model.model.hidden) + " --sequence " +
                        std::to_string(of_model.model.sequence) + " --batch " +
                        std::to_string(of_model.model.microbatch) + ": " + what + " " +
                        std::to_string(number) + " " + unit + ", and --layer-costs reads at most " +
                        std::to_string(most_cost));
    };
    for (const layer_entry& one : all) {
      const auto layer = [&](const char* takes) { return "layer " + one.which + takes; };
      refuse(layer("'s forward takes"), one.costs.forward, "ns");
      refuse(layer("'s backward for the input takes"), one.costs.backward_input, "ns");
      refuse(layer("'s backward for the weights takes"), one.costs.backward_weight, "ns");
      refuse(layer(" keeps"), one.costs.memory_forward, "KiB");
      refuse(layer("'s copy to the host takes"), one.copy.value_or(0), "ns");
      refuse(layer(" keeps, for its weights,"), -one.costs.memory_backward_weight, "KiB");
      refuse(layer("'s state takes"), one.costs.memory_weights, "KiB");
      refuse(layer("'s sum of gradients takes"), one.costs.reduce_grad, "ns");
      refuse(layer("'s weights are gathered in"), one.costs.unshard, "ns");
      refuse(layer("'s gathered weights take"), one.costs.memory_unshard, "KiB");
    }
    for (const bool between : {false, true}) refuse("a hop takes", hop(between), "ns");
  }
  //! A message from one stage to the next, of the longest slice.
  //! @param between  nodes
  std::int64_t hop(bool between) const {
    std::int64_t longest = 0;
    for (const transformer& slice : slices_) {
      program_chain none_yet;
      const std::int64_t bytes = transformer_writer(slice, none_yet).message_bytes();
      longest = std::max(longest, on_.time({.message = bytes, .far = between ? bytes : 0}));
    }
    return longest;
  }

  //! What a rank with both ends has of it once.
  std::string told_shared() const {
    const std::int64_t shared = all_layers().shared_ends(false);
    return shared == 0
               ? ""
               : "\nA rank that has both has " + std::to_string(shared) +
                     " less of state: a table that they share, whose\ngradients two ranks sum in " +
                     std::to_string(all_layers().reduce_ends()) + ".";
  }

  //! Pieces of a head are for stages of their own, beside those of the layers.
  suggested_pipeline suggested(int slices) const {
    if (of_model.model.head_pieces == 1) return {std::min(layers, 8), 1, slices, dealt(), second()};
    return {std::clamp(dealt() / 2, 1, 8), 2, slices, dealt(), second()};
  }
  //! A column of what copies take, where that is known of any.
  static void add_copies(std::vector<std::vector<std::string>>& rows,
                         const std::vector<layer_entry>& all) {
    if (std::ranges::none_of(all, [](const layer_entry& one) { return one.copy.has_value(); }))
      return;
    rows[0].push_back("copy");
    for (std::size_t at = 0; at < all.size(); ++at)
      rows[at + 1].push_back(all[at].copy ? std::to_string(*all[at].copy) : "-");
  }

  //! "Between ranks a hop takes 5", or both.
  static std::string told(const suggested_hops& hops, const std::string& what) {
    const bool nodes = hops.node_ranks > 0;
    return "\nBetween ranks " + std::string(nodes ? "of a node " : "") + what + " takes " +
           std::to_string(hops.within) +
           (nodes ? ", between nodes " + std::to_string(hops.between) : "");
  }

  void print(const std::vector<layer_entry>& all) const {
    const transformer& model = of_model.model;
    std::cout << layers << (layers == 1 ? " layer" : " layers")
              << (ends_apart ? ", embedding and head" : "")
              << (model.head_pieces > 1 ? std::string(ends_apart ? "" : " and the head") + " in " +
                                              std::to_string(model.head_pieces) + " pieces"
                                        : "")
              << ", each on " << of_model.devices() << " of "
              << of_machine.device
              << ", ns and KiB. Whole saves: what a whole\nbackward takes less than its halves. "
                 "Kept: from the forward on, and from I to W. State: weights,\ngradients and "
                 "optimizer. "
              << (second() ? "Again: what a forward takes when it runs a second time, and then "
                             "brings back.\n"
                           : "")
              << (on_.to_host > 0 ? "Copy: of what is kept, to the host or back.\n" : "")
              << (sums() ? "Sum: of gradients, over " + of_model.told_replicas() + ".\n" : "")
              << (gathers() ? "Gather: of weights, from " + std::to_string(model.weight_shards) +
                                  " replicas, and what they then take.\n"
                            : "")
              << "The first layer " << (ends_apart ? "is" : "has") << " the embedding, "
              << (model.head_pieces > 1
                      ? "the last " + std::to_string(model.head_pieces) + " are the head's pieces"
                      : "the last the head")
              << (model.further_tokens == 0 ? ""
                  : model.further_tokens == 1
                      ? ", and a layer that foretells a further token"
                      : ", and " + std::to_string(model.further_tokens) +
                            " layers that foretell further tokens")
              << "." << told_shared() << "\n\n";
    std::vector<std::vector<std::string>> rows{
        {"layer", "F", "I", "W", "whole saves", "kept", "after I", "state"}};
    for (const layer_entry& one : all)
      rows.push_back(
          {one.slice > 0 ? "" : one.which, std::to_string(one.costs.forward),
           std::to_string(one.costs.backward_input), std::to_string(one.costs.backward_weight),
           std::to_string(one.costs.whole_saves), std::to_string(one.costs.memory_forward),
           std::to_string(-one.costs.memory_backward_weight),
           one.slice > 0 ? "" : std::to_string(one.costs.memory_weights)});
    if (second()) {
      rows[0].insert(rows[0].end(), {"again", "brings back"});
      for (std::size_t at = 0; at < all.size(); ++at) {
        const unit_costs& one = all[at].costs;
        rows[at + 1].insert(rows[at + 1].end(), {std::to_string(one.forward - one.recompute_saves),
                                                 std::to_string(one.memory_recompute)});
      }
    }
    add_copies(rows, all);
    const auto add = [&](const char* title, std::int64_t unit_costs::*told) {
      rows[0].push_back(title);
      for (std::size_t at = 0; at < all.size(); ++at)
        rows[at + 1].push_back(all[at].slice > 0 ? "" : std::to_string(all[at].costs.*told));
    };
    if (sums()) add("sum", &unit_costs::reduce_grad);
    if (gathers()) add("gather", &unit_costs::unshard);
    if (gathers()) add("gathered", &unit_costs::memory_unshard);
    const auto slices = static_cast<int>(slices_.size());
    if (slices > 1) {  // behind the layers: which, and how long
      rows[0].insert(rows[0].begin() + 1, {"slice", "tokens"});
      for (std::size_t at = 0; at < all.size(); ++at) {
        const auto slice = static_cast<std::size_t>(all[at].slice);
        rows[at + 1].insert(rows[at + 1].begin() + 1,
                            {std::to_string(slice), std::to_string(slices_[slice].length())});
      }
    }
    const suggested_hops hops{
        .within = hop(node_ranks == 0), .node_ranks = node_ranks, .between = hop(true)};
    std::cout << print_table(rows) << told(hops, "a hop")
              << ". So, for what ranks and micro-batches you like:\n"
              << comparing_command(suggested(slices), hops, out) << '\n';
  }
  void print(const measured_stages& found) const {
    const auto count = static_cast<int>(found.stages.size());
    std::cout << count << (count == 1 ? " stage" : " stages") << " of " << found.ranks
              << (found.ranks == 1 ? " rank" : " ranks") << ", ns, medians of all jobs in the trace"
              << (found.workers > 1 ? " of each rank's worker " + std::to_string(trace.worker) : "")
              << ".\nWhole saves: what a whole backward takes less than its halves.\n"
              << (found.guessed_halves
                      ? "Halves that the trace does not have are taken as equal: a schedule that "
                        "splits backwards\n(zb_h1) tells both.\n\n"
                      : "\n");
    if (!found.left_out.empty())
      std::cout << "Not told, as layers take no such thing: " << found.left_out << ".\n\n";
    std::vector<std::vector<std::string>> rows{{"stage", "F", "I", "W", "whole saves"}};
    for (const layer_entry& one : found.stages)
      rows.push_back(
          {one.which, std::to_string(one.costs.forward), std::to_string(one.costs.backward_input),
           std::to_string(one.costs.backward_weight), std::to_string(one.costs.whole_saves)});
    add_copies(rows, found.stages);
    const bool between_alone = found.hops.node_ranks > 0 && !found.within_nodes;
    std::cout << print_table(rows)
              << (between_alone
                      ? "\nBetween nodes a message takes " + std::to_string(found.hops.between)
                      : told(found.hops, "a message") +
                            (node_ranks > found.hops.node_ranks ? " (none left its node)" : ""))
              << ". So, for what micro-batches you like:\n"
              << comparing_command({found.ranks, 1, found.slices, count}, found.hops, out) << '\n';
  }

  std::vector<transformer> slices_;  // a model of each
  machine on_{};
};

}  // namespace

void add_costs(CLI::App& app) {
  auto* command = app.add_subcommand(
      "costs",
      "What each layer of a transformer takes and keeps, or each stage took, as --layer-costs "
      "reads it");
  command->footer(exit_codes);
  const auto mine = std::make_shared<costs_command>();
  mine->add(*command);
  command->callback([mine] { mine->run(); });
}

}  // namespace stretto::tool
