#include "layers.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "errors.hpp"
#include "numbers.hpp"

namespace stretto::tool {

namespace {

using nlohmann::json;

constexpr double most_of_model = 2e11;

//! F,I,W of one layer that differs from the others.
void read_times(const std::string& option, const std::string& text, unit_costs& layer) {
  if (text.empty()) return;
  const auto times = read_numbers<3>(option, text, "F,I,W", 0);
  layer.forward = times[0];
  layer.backward_input = times[1];
  layer.backward_weight = times[2];
  layer.whole_saves = 0;
}

//! The file of --layer-costs.
class layer_file {
 public:
  layer_file(const layer_options& options, dealt_layers& to)
      : file_{"--layer-costs", options.file},
        text_(options.text),
        forward_only_(options.forward_only),
        to_(to),
        weights_alone_(to.costs.size(), -1) {}

  void apply() {
    json all = file_.parse();
    if (all.is_object()) all = of_whole_model(all);
    if (!all.is_array()) file_.fail("must hold a list, or an object with one");
    to_.slices.assign(slices_of(all), to_.costs);
    std::size_t count = 0;
    for (const json& entry : all) apply(entry, place_of(count++));
    for (std::size_t layer = 0; layer < to_.costs.size() && !to_.slices.empty(); ++layer)
      to_.costs[layer] = sum_of_slices(layer);
    for (std::size_t layer = 0; layer < to_.costs.size() && forward_only_; ++layer)
      if (weights_alone_[layer] >= 0) to_.costs[layer].memory_weights = weights_alone_[layer];
  }

 private:
  //! A file that says of how many layers it is, and what the first and the last of them are, is for
  //! no others. @return its list
  json of_whole_model(const json& all) {
    for (const auto& [key, value] : all.items())
      if (key != "layers" && key != "ends_apart" && key != "costs")
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
          : key == "memory_forward"         ? &unit_costs::memory_forward
          : key == "memory_backward_input"  ? &unit_costs::memory_backward_input
          : key == "memory_backward_weight" ? &unit_costs::memory_backward_weight
          : key == "memory_weights"         ? &unit_costs::memory_weights
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
  dealt_layers& to_;
  std::vector<std::int64_t> weights_alone_;  // of every layer; -1: not told
};

//! Layers of which much is said that is of training, in a step of forwards alone.
void leave_forwards(dealt_layers& made, bool keeps_nothing) {
  const auto in = [&](std::vector<unit_costs>& layers) {
    for (unit_costs& one : layers) {
      one.backward_input = one.backward_weight = one.whole_saves = 0;
      if (keeps_nothing)
        one.memory_forward = one.memory_backward_input = one.memory_backward_weight = 0;
    }
  };
  in(made.costs);
  for (std::vector<unit_costs>& slice : made.slices) in(slice);
}

//! Layers that are dealt whatever they take may take more than there is.
void refuse_above(const layer_options& options, const dealt_layers& made, const placement& where,
                  const std::vector<std::int64_t>& limit, const std::vector<std::int32_t>& alive) {
  for (int rank = 0; rank < where.ranks && !limit.empty(); ++rank) {
    std::int64_t need = 0;
    for (int chunk = 0; chunk < where.chunks; ++chunk) {
      const int stage = where.stage_of(rank, chunk);
      if (stage < 0) continue;
      const auto at = static_cast<std::size_t>(stage);
      const unit_costs sum = sum_of_layers(made.stages[at], made.cost_of());
      need += sum.memory_weights + (alive.empty() ? 0 : alive[at] * sum.memory_forward);
    }
    const std::int64_t most = limit[static_cast<std::size_t>(rank)];
    if (need > most)
      throw bad_input("--limit " + std::to_string(most) + ": with --layers " + options.text +
                      " rank " + std::to_string(rank) + " needs " + std::to_string(need));
  }
}

}  // namespace

void layer_options::add(CLI::App& command) {
  command.add_option("--layers", text,
                     "The model by layers, of which each has the costs given (and the first and "
                     "the last those of --embedding and --head): how many on every rank, as in "
                     "9,8,8,7; even:N; balanced:N; rank_list:0,0,1,1; table:3,2,2,1 (of every "
                     "stage; sparse_table: where some are empty); or Megatron-LM's layout, as in Et*3|(tt|)*29,m|L");
  command.add_option("--embedding", embedding, "Times F,I,W of the first of --layers")
      ->needs("--layers");
  command.add_option("--head", head, "Times F,I,W of the last of --layers")->needs("--layers");
  command
      .add_option("--layer-costs", file,
                  "JSON file with times and memory of some of --layers: [{\"layer\": 3, or [3, 7] "
                  "for both, \"forward\": 2, \"memory_weights\": 5, ...}]; with \"slice\" of "
                  "some of --slices; or {\"layers\": 8, \"costs\": [...]}, which is for so many "
                  "--layers alone")
      ->needs("--layers");
}

dealt_layers deal_layers(const layer_options& options, const placement& where,
                         const unit_costs& layer, const std::vector<std::int64_t>& limit,
                         bool strict) {
  dealt_layers made;
  made.how = assignment::described(options.text);
  if (!made.how.complaint().empty())
    throw bad_option("--layers", options.text, made.how.complaint());
  made.costs.assign(static_cast<std::size_t>(made.how.layers()), layer);
  read_times("--embedding", options.embedding, made.costs.front());
  read_times("--head", options.head, made.costs.back());
  if (!options.file.empty()) layer_file(options, made).apply();
  if (options.forward_only) leave_forwards(made, options.keeps_nothing);

  double sum = 0;  // of what one micro-batch takes
  bool takes = true;
  for (const unit_costs& one : made.costs) {
    if (one.whole_saves > one.backward_input + one.backward_weight)
      throw bad_input((options.file.empty() ? "--whole-saves " + std::to_string(one.whole_saves)
                                            : "--layer-costs " + options.file) +
                      ": layer " + std::to_string(&one - made.costs.data()) + " of --layers " +
                      options.text + " saves " + std::to_string(one.whole_saves) +
                      " of a whole backward, whose halves take " +
                      std::to_string(one.backward_input + one.backward_weight));
    sum += static_cast<double>(one.forward + one.backward_input + one.backward_weight) +
           static_cast<double>(one.reduce_grad) + static_cast<double>(one.unshard) +
           static_cast<double>(one.memory_unshard) +
           std::abs(static_cast<double>(one.memory_forward)) +
           std::abs(static_cast<double>(one.memory_backward_input)) +
           std::abs(static_cast<double>(one.memory_backward_weight));
    takes = takes && one.memory_forward >= 0;
  }
  if (sum > most_of_model)
    throw bad_option("--layers", options.text,
                     "times and memory of all layers must sum to at most 2e11");

  made.stages.resize(static_cast<std::size_t>(where.stages()));
  std::vector<std::int32_t> alive = takes ? options.alive : std::vector<std::int32_t>{};
  for (int stage = 0; takes && options.alive.empty() && stage < where.stages(); ++stage)
    alive.push_back(std::min(where.microbatches, where.stages() - stage));
  std::vector<std::int64_t> room = limit;
  for (std::int64_t& one : room) one = std::max<std::int64_t>(0, one - options.spare);
  const bool within = strict || options.within_limit;
  // Where a rank gathers those of all its stages it has them as it has its own part.
  const auto cost_of = [&](int layer) {
    unit_costs one = made.costs[static_cast<std::size_t>(layer)];
    if (options.gathered >= where.chunks) one.memory_weights += one.memory_unshard;
    return one;
  };
  verdict answer = made.how.assign(
      where, made.stages, cost_of,
      within ? assignment::balance_limits{room, alive} : assignment::balance_limits{}, &made.bound);
  // A schedule may keep less than 1F1B: whether it fits is then its own to say.
  if (answer.what == fault::over_limit && !strict)
    answer = made.how.assign(where, made.stages, made.cost_of(), {}, &made.bound);
  if (answer.what == fault::over_limit)
    throw layers_refused("--limit " + std::to_string(answer.limit) + ": no cut of --layers " +
                             options.text + " keeps to it; " + std::to_string(answer.amount) +
                             " is enough",
                         answer);
  if (!answer.ok())
    throw layers_refused("--layers " + options.text + ": " + made.how.explain(answer, where),
                         answer);
  if (strict && made.how.name() != "balanced") refuse_above(options, made, where, limit, alive);
  return made;
}

}  // namespace stretto::tool
