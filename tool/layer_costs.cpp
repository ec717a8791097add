#include "layer_costs.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "errors.hpp"
#include "stretto/assignment/described.hpp"

namespace stretto::tool {

using nlohmann::ordered_json;

std::string layer_costs_file(std::span<const layer_entry> all, const layer_costs_format& with) {
  ordered_json list = ordered_json::array();
  const auto add = [&](const layer_entry& one) {
    ordered_json entry;
    if (one.layers.size() == 1)
      entry["layer"] = one.layers.front();
    else if (!one.layers.empty())
      entry["layer"] = one.layers;
    const auto add_state = [&](ordered_json& to) {
      to["memory_weights"] = one.costs.memory_weights;
      to["memory_weights_alone"] = one.weights_alone;
      if (with.sums) to["reduce_grad"] = one.costs.reduce_grad;
      if (!with.gathers) return;
      to["unshard"] = one.costs.unshard;
      to["memory_unshard"] = one.costs.memory_unshard;
    };
    // Weights, and their gradients, are of all slices.
    if (with.memory && one.slice == 0) add_state(list.emplace_back(entry));
    if (one.slice >= 0) entry["slice"] = one.slice;
    entry["forward"] = one.costs.forward;
    entry["backward_input"] = one.costs.backward_input;
    entry["backward_weight"] = one.costs.backward_weight;
    entry["whole_saves"] = one.costs.whole_saves;
    if (with.memory) {
      entry["memory_forward"] = one.costs.memory_forward;
      entry["memory_backward_input"] = one.costs.memory_backward_input;
      entry["memory_backward_weight"] = one.costs.memory_backward_weight;
      if (one.slice < 0) add_state(entry);
    }
    if (with.second) {
      entry["recompute_saves"] = one.costs.recompute_saves;
      entry["memory_recompute"] = one.costs.memory_recompute;
    }
    if (one.copy) entry["offload"] = *one.copy;
    list.push_back(entry);
  };
  // Later entries win.
  for (const layer_entry& one : all)
    if (one.layers.empty()) add(one);
  for (const layer_entry& one : all)
    if (!one.layers.empty()) add(one);
  ordered_json file{{"layers", with.layers}};
  if (with.ends_apart) file["ends_apart"] = true;
  if (with.shared_ends > 0) {
    file["shared_ends"] = with.shared_ends;
    file["shared_ends_alone"] = with.shared_ends_alone;
    file["reduce_ends"] = with.reduce_ends;
  }
  file["costs"] = std::move(list);
  return file.dump(1) + "\n";
}

std::string comparing_command(const suggested_pipeline& of, const suggested_hops& hops,
                              const std::string& file) {
  return "stretto compare --ranks " + std::to_string(of.ranks) + " --microbatches 32 " +
         (of.chunks > 1 ? "--chunks " + std::to_string(of.chunks) + " " : "") +
         (of.slices > 1 ? "--slices " + std::to_string(of.slices) + " " : "") + "--layers " +
         (of.layers <= assignment::described::most_balanced ? "balanced:" : "even:") +
         std::to_string(of.layers) + " --layer-costs " +
         (file.empty() ? "FILE" : shell_word(file)) + " --cost 0,0,0," +
         std::to_string(hops.within) +
         (hops.node_ranks > 0
              ? " --nodes " + std::to_string(hops.node_ranks) + "," + std::to_string(hops.between)
              : "") +
         (of.again ? " --recompute all" : "");
}

}  // namespace stretto::tool
