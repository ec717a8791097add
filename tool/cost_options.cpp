#include "cost_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <limits>
#include <system_error>
#include <vector>

#include "catalogue.hpp"
#include "errors.hpp"
#include "numbers.hpp"

namespace stretto::tool {

void add_gathered(CLI::App& command, std::optional<int>& most) {
  command
      .add_option(
          "--gathered", most,
          "Where weights are gathered, of how many stages at once a rank has them: of those "
          "that it needs next (default 3, as PyTorch)")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()).description(""));
}

void refuse_few_gathered(int gathered, const std::string& schedule) {
  throw bad_option("--gathered", std::to_string(gathered),
                   schedule + " pairs jobs of two stages, whose weights must be there at once");
}

void cost_options::add(CLI::App& command, const kinds& beside) {
  command.add_option("--cost", cost,
                     "Times F,I,W,C: forward, backward for the input, backward for the weights, "
                     "hop between ranks (default 1,1,1,0; a whole backward costs I+W, less "
                     "--whole-saves)");
  command.add_option(
      "--nodes", nodes,
      "N,T: a node has N ranks, in their order, and a hop to a rank of another takes "
      "T (default: all ranks are of one, and a hop takes C)");
  command.add_flag("--serial-links", serial_links,
                   "A rank's messages to another one follow one another, each for as long as a hop "
                   "takes (default: any number are on their way at once)");
  command
      .add_option("--whole-saves", whole_saves,
                  "Time that a whole backward takes less than I+W, because what both read is read "
                  "once (default 0)")
      ->check(CLI::Range(std::int64_t{0}, most_cost).description(""));
  command.add_option("--memory", memory,
                     "Memory changes F,I,W: at a forward's start, at the others' end "
                     "(default 1,0,-1; of forwards alone 0,0,0)");
  if (beside.windows) {
    command.add_option(
        "--copy", copy,
        "What --offload's copies, to the host or back, take and move: T,M, or T where "
        "they move what the forward keeps (default 1)");
    command.add_option(
        "--again", again,
        "What --recompute's forwards take when they run again, and bring back of what they have "
        "not kept: T,M, or T where that is all (default: what they take the first time, and all)");
  }
  replicas = beside.sums || beside.gathers;
  if (beside.sums)
    command
        .add_option(
            "--reduce-grad", reduce_grad,
            "Time of the sum of a chunk's gradients over its data-parallel replicas, those of "
            "both directions where there are two, beside the jobs (default 0: none)")
        ->check(CLI::Range(std::int64_t{0}, most_cost).description(""));
  if (beside.gathers) {
    command.add_option(
        "--unshard", unshard,
        "What gathering a chunk's weights, of which data-parallel replicas hold a part each, takes "
        "beside the jobs, and what they take until they are dropped: T,M (default 0,0: each has "
        "them)");
    add_gathered(command, gathered);
  }
  command
      .add_option("--weights", weights,
                  "Memory of a chunk's weights, gradients and optimizer state, which a rank holds "
                  "all the time, those of both directions where there are two (default 0)")
      ->check(CLI::Range(std::int64_t{0}, most_cost).description(""));
  if (beside.limits)
    command.add_option("--limit", limits_text,
                       "Memory that no rank may exceed; several, as in 8,12,16, are compared");
  else
    command.add_option("--limit", limit, "Memory that no rank may exceed")
        ->check(CLI::Range(std::int64_t{0}, most_memory).description(""));
  if (beside.pairs)
    command
        .add_option("--hides", hides,
                    "How much of the shorter half of a pair the longer one hides, in percent "
                    "(default 0)")
        ->check(CLI::Range(0, 100).description(""));
  command.add_option(
      "--costs", costs_file,
      "JSON file with times and memory per rank, chunk, kind, micro-batch and slice");
  layers.add(command);
}

void cost_options::refuse_nothing_gathered(bool gathers) const {
  if (!gathered || gathers) return;
  throw bad_option(
      "--gathered", std::to_string(*gathered),
      "has a meaning only where weights are gathered: with --unshard, or what a file of "
      "costs has of it");
}

cost_options cost_options::for_step(bool forward_only, bool copies) const {
  cost_options costs = *this;
  costs.layers.forward_only = forward_only;
  costs.layers.copies = copies && copy.empty();
  costs.layers.gathered = replicas ? gathered.value_or(default_gathered) : 0;
  costs.layers.keeps_nothing = memory.empty() && forward_only;
  if (costs.layers.keeps_nothing) costs.memory = "0,0,0";
  if (forward_only) costs.whole_saves = 0;
  return costs;
}

cost_options::second_run cost_options::second() const {
  if (again.empty()) return {};
  if (again.find(',') == std::string::npos)
    return {.time = read_numbers<1>("--again", again, "T or T,M", 0)[0], .memory = {}};
  const auto given = read_numbers<2>("--again", again, "T,M", 0);
  return {.time = given[0], .memory = given[1]};
}

unit_costs cost_options::units() const {
  unit_costs units;
  units.pair_hides = hides;
  if (!cost.empty()) {
    const auto given = read_numbers<4>("--cost", cost, "F,I,W,C", 0);
    units.forward = given[0];
    units.backward_input = given[1];
    units.backward_weight = given[2];
    units.communication = given[3];
  }
  if (!nodes.empty()) {
    const auto given = read_numbers<2>("--nodes", nodes, "N,T", 0);
    if (given[0] < 1 || given[0] > most_node_ranks)
      throw bad_option("--nodes", nodes,
                       "N is a number of ranks, from 1 to " + std::to_string(most_node_ranks));
    units.node_ranks = static_cast<int>(given[0]);
    units.between_nodes = given[1];
  }
  units.serial_links = serial_links;
  units.whole_saves = whole_saves;
  units.reduce_grad = reduce_grad;
  if (!unshard.empty()) {
    const auto given = read_numbers<2>("--unshard", unshard, "T,M", 0);
    units.unshard = given[0];
    units.memory_unshard = given[1];
  }
  if (!memory.empty()) {
    const auto given = read_numbers<3>("--memory", memory, "F,I,W", -most_cost);
    units.memory_forward = given[0];
    units.memory_backward_input = given[1];
    units.memory_backward_weight = given[2];
  }
  if (copies_told()) {
    const auto given = read_numbers<2>("--copy", copy, "T,M", 0);
    units.offload = given[0];
    units.memory_offload = given[1];
  } else if (!copy.empty()) {
    units.offload = read_numbers<1>("--copy", copy, "T or T,M", 0)[0];
  }
  return units;
}

bool cost_options::deals() const {
  return layers.given() && assignment::described(layers.text).name() == "balanced";
}

std::vector<std::int64_t> cost_options::several_limits() const {
  if (limits_text.empty()) return {};
  std::vector<std::int64_t> all = read_list("--limit", limits_text, 0, most_memory);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::vector<std::int64_t> cost_options::limits(int ranks) const {
  if (!limit) return {};
  return std::vector<std::int64_t>(static_cast<std::size_t>(ranks), *limit);
}

}  // namespace stretto::tool
