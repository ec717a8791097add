#include "layer_file.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "json_file.hpp"
#include "numbers.hpp"

namespace stretto::tool {

namespace {

using nlohmann::json;

class layer_file {
 public:
  layer_file(const layer_options& options, dealt_layers& to)
      : file_{"--layer-costs", options.file},
        text_(options.text),
        forward_only_(options.forward_only),
        copies_(options.copies),
        to_(to),
        weights_alone_(to.costs.size(), -1),
        copy_told_(to.costs.size(), false) {}

  void apply() {
    json all = file_.parse();
    if (all.is_object()) all = of_whole_model(all);
    if (!all.is_array()) file_.fail("must hold a list, or an object with one");
    to_.slices.assign(slices_of(all), to_.costs);
    std::size_t count = 0;
    for (const json& entry : all) apply(entry, place_of(count++));
    const auto untold = std::find(copy_told_.begin(), copy_told_.end(), false);
    if (copies_ && untold != copy_told_.end())
      file_.fail("does not tell what a copy of layer " +
                 std::to_string(untold - copy_told_.begin()) +
                 " to the host takes (\"offload\"); nor does --copy");
    for (std::size_t layer = 0; layer < to_.costs.size() && !to_.slices.empty(); ++layer)
      to_.costs[layer] = sum_of_slices(layer);
    for (std::size_t layer = 0; layer < to_.costs.size() && forward_only_; ++layer)
      if (weights_alone_[layer] >= 0) to_.costs[layer].memory_weights = weights_alone_[layer];
    if (forward_only_) to_.shared_ends = shared_alone_;
    for (const unit_costs* end : {&to_.costs.front(), &to_.costs.back()})
      if (to_.shared_ends > end->memory_weights)
        file_.fail("\"shared_ends\" is " + std::to_string(to_.shared_ends) +
                   ", more than an end has: " + std::to_string(end->memory_weights));
  }

 private:
  //! A file that says of how many layers it is, and what the first and the last of them are, is for
  //! no others. @return its list
  json of_whole_model(const json& all) {
    for (const auto& [key, value] : all.items())
      if (key != "layers" && key != "ends_apart" && key != "costs" && !tell_shared(key, value))
        file_.fail("has an unknown key, \"" + key + "\"");
    for (const char* const needed : {"layers", "costs"})
      if (!all.contains(needed)) file_.fail("\"" + std::string(needed) + "\" is missing");
    const auto told =
        file_.integer(all["layers"], "\"layers\"", 1, assignment::described::most_layers);
    const bool apart = all.contains("ends_apart") && all["ends_apart"] == json(true);
    if (all.contains("ends_apart") && !all["ends_apart"].is_boolean())
      file_.fail("\"ends_apart\" is " + in_words(all["ends_apart"]) + ", must be true or false");
    const std::string letters = to_.how.letters();
    const bool ends = letters.starts_with('E') || letters.ends_with('L');
    if (ends && !apart)
      file_.fail(
          "does not have embedding and head as layers of their own, as E and L of --layers " +
          text_ + " are; stretto costs --ends-apart writes it so");
    if (apart && !letters.empty() && !(letters.starts_with('E') && letters.ends_with('L')))
      file_.fail("has embedding and head as layers of their own, which --layers " + text_ +
                 " does not begin and end with, as E and L");
    if (told != static_cast<std::int64_t>(to_.costs.size()))
      file_.fail("is of " + std::to_string(told) + (told == 1 ? " layer" : " layers") +
                 ", and --layers " + text_ + " has " + std::to_string(to_.costs.size()));
    place_ = "costs";
    if (!all["costs"].is_array())
      file_.fail("\"costs\" is " + in_words(all["costs"]) + ", must be a list");
    return all["costs"];
  }
  //! What both ends have. @return whether that is what the key tells
  bool tell_shared(const std::string& key, const json& value) {
    std::int64_t* const told = key == "shared_ends"         ? &to_.shared_ends
                               : key == "shared_ends_alone" ? &shared_alone_
                               : key == "reduce_ends"       ? &to_.reduce_ends
                                                            : nullptr;
    if (told == nullptr) return false;
    if (to_.costs.size() < 2) file_.fail("\"" + key + "\" is of two layers, and there is one");
    *told = file_.integer(value, "\"" + key + "\"", 0, most_cost);
    return true;
  }
  std::string place_of(std::size_t entry) const {
    return place_ + "[" + std::to_string(entry) + "]";
  }

  //! One more than the last that an entry names.
  std::size_t slices_of(const json& all) const {
    constexpr std::int64_t most = 1 << 14;
    std::size_t count = 0;
    for (std::size_t at = 0; at < all.size(); ++at) {
      const json& entry = all[at];
      if (!entry.is_object() || !entry.contains("slice")) continue;
      for (const std::int64_t one : numbers(entry["slice"], place_of(at) + ".slice", most - 1))
        count = std::max(count, static_cast<std::size_t>(one) + 1);
    }
    if (count * to_.costs.size() > most_costs)
      file_.fail("tells " + std::to_string(count) +
                 " slices of so many layers apart, which is more "
                 "than " +
                 std::to_string(most_costs) + " of both multiplied");
    return count;
  }
  void apply(const json& entry, const std::string& place) {
    if (!entry.is_object()) file_.fail(place + " must be an object");
    const auto layers = static_cast<std::int64_t>(to_.costs.size());
    const std::vector<std::int64_t> chosen =
        entry.contains("layer") ? numbers(entry["layer"], place + ".layer", layers - 1)
                                : all_below(layers);
    const auto slices = static_cast<std::int64_t>(to_.slices.size());
    const std::vector<std::int64_t> of_slices =
        entry.contains("slice") ? numbers(entry["slice"], place + ".slice", slices - 1)
                                : all_below(slices);
    for (const auto& [key, value] : entry.items()) {
      if (key == "layer" || key == "slice") continue;
      const bool alone = key == "memory_weights_alone";
      std::int64_t unit_costs::*const member =
          key == "forward"                  ? &unit_costs::forward
          : key == "backward_input"         ? &unit_costs::backward_input
          : key == "backward_weight"        ? &unit_costs::backward_weight
          : key == "whole_saves"            ? &unit_costs::whole_saves
          : key == "recompute_saves"        ? &unit_costs::recompute_saves
          : key == "memory_recompute"       ? &unit_costs::memory_recompute
          : key == "memory_forward"         ? &unit_costs::memory_forward
          : key == "memory_backward_input"  ? &unit_costs::memory_backward_input
          : key == "memory_backward_weight" ? &unit_costs::memory_backward_weight
          : key == "memory_weights"         ? &unit_costs::memory_weights
          : key == "offload"                ? &unit_costs::offload
          : key == "reduce_grad"            ? &unit_costs::reduce_grad
          : key == "unshard"                ? &unit_costs::unshard
          : key == "memory_unshard"         ? &unit_costs::memory_unshard
                                            : nullptr;
      if (member == nullptr && !alone) file_.fail(place + " has an unknown key, \"" + key + "\"");
      const bool of_stage = key == "memory_weights" || key == "reduce_grad" || key == "unshard" ||
                            key == "memory_unshard" || alone;
      if (of_stage && entry.contains("slice"))
        file_.fail(place + "." + key + " is of all slices; an entry of some cannot give it");
      const bool signs = key == "memory_backward_input" || key == "memory_backward_weight";
      const std::int64_t number =
          file_.integer(value, place + "." + key, signs ? -most_cost : 0, most_cost);
      for (const std::int64_t layer : chosen) {
        if (alone) {
          weights_alone_[static_cast<std::size_t>(layer)] = number;
          continue;
        }
        if (member == &unit_costs::offload) copy_told_[static_cast<std::size_t>(layer)] = true;
        if (member == &unit_costs::memory_recompute)
          to_.brings_back[static_cast<std::size_t>(layer)] = true;
        to_.costs[static_cast<std::size_t>(layer)].*member = number;
        for (const std::int64_t slice : of_slices)
          to_.slices[static_cast<std::size_t>(slice)][static_cast<std::size_t>(layer)].*member =
              number;
      }
    }
  }
  //! Numbers from 0 to `most` that a value names: one, or a list.
  std::vector<std::int64_t> numbers(const json& which, const std::string& place,
                                    std::int64_t most) const {
    std::vector<std::int64_t> all;
    if (which.is_array() && which.empty()) file_.fail(place + " names none");
    for (const json& one : which.is_array() ? which : json::array({which}))
      all.push_back(file_.integer(one, place, 0, most));
    return all;
  }
  static std::vector<std::int64_t> all_below(std::int64_t count) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(count));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    return all;
  }
  //! What a layer takes for all slices of a micro-batch; its weights and their gradients are there
  //! once.
  unit_costs sum_of_slices(std::size_t layer) const {
    unit_costs sum = sum_of_layers(
        {0, static_cast<std::int32_t>(to_.slices.size())},
        [&](int slice) { return to_.slices[static_cast<std::size_t>(slice)][layer]; });
    sum.memory_weights = to_.costs[layer].memory_weights;
    sum.reduce_grad = to_.costs[layer].reduce_grad;
    sum.unshard = to_.costs[layer].unshard;
    sum.memory_unshard = to_.costs[layer].memory_unshard;
    return sum;
  }

  // Of all layers and slices; some 200 MB.
  static constexpr std::size_t most_costs = std::size_t{1} << 21;

  json_file file_;
  std::string text_;   // of --layers
  std::string place_;  // of the list in it
  bool forward_only_;
  bool copies_;
  dealt_layers& to_;
  std::int64_t shared_alone_ = 0;            // of shared_ends, what forwards alone need
  std::vector<std::int64_t> weights_alone_;  // of every layer; -1: not told
  std::vector<bool> copy_told_;              // of every layer
};

}  // namespace

void read_layer_file(const layer_options& options, dealt_layers& to) {
  layer_file(options, to).apply();
}

}  // namespace stretto::tool
