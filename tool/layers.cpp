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
  layer_file(const std::string& path, std::vector<unit_costs>& layers)
      : file_{"--layer-costs", path}, layers_(layers) {}

  void apply() {
    const json all = file_.parse();
    if (!all.is_array()) file_.fail("must hold a list");
    int count = 0;
    for (const json& entry : all) apply(entry, "[" + std::to_string(count++) + "]");
  }

 private:
  void apply(const json& entry, const std::string& place) {
    if (!entry.is_object()) file_.fail(place + " must be an object");
    const std::vector<std::size_t> chosen = chosen_by(entry, place);
    for (const auto& [key, value] : entry.items()) {
      if (key == "layer") continue;
      std::int64_t unit_costs::*const member =
          key == "forward"                  ? &unit_costs::forward
          : key == "backward_input"         ? &unit_costs::backward_input
          : key == "backward_weight"        ? &unit_costs::backward_weight
          : key == "whole_saves"            ? &unit_costs::whole_saves
          : key == "memory_forward"         ? &unit_costs::memory_forward
          : key == "memory_backward_input"  ? &unit_costs::memory_backward_input
          : key == "memory_backward_weight" ? &unit_costs::memory_backward_weight
          : key == "memory_weights"         ? &unit_costs::memory_weights
                                            : nullptr;
      if (member == nullptr) file_.fail(place + " has an unknown key, \"" + key + "\"");
      const bool signs = key == "memory_backward_input" || key == "memory_backward_weight";
      const std::int64_t number =
          file_.integer(value, place + "." + key, signs ? -most_cost : 0, most_cost);
      for (const std::size_t layer : chosen) layers_[layer].*member = number;
    }
  }
  //! The layers that it names; all, where it names none.
  std::vector<std::size_t> chosen_by(const json& entry, const std::string& place) const {
    std::vector<std::size_t> chosen(layers_.size());
    std::iota(chosen.begin(), chosen.end(), std::size_t{0});
    if (!entry.contains("layer")) return chosen;
    const json& which = entry["layer"];
    chosen.clear();
    for (const json& one : which.is_array() ? which : json::array({which}))
      chosen.push_back(static_cast<std::size_t>(file_.integer(
          one, place + ".layer", 0, static_cast<std::int64_t>(layers_.size()) - 1)));
    return chosen;
  }

  json_file file_;
  std::vector<unit_costs>& layers_;
};

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
                  "for both, \"forward\": 2, \"memory_weights\": 5, ...}]")
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
  if (!options.file.empty()) layer_file(options.file, made.costs).apply();

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
           std::abs(static_cast<double>(one.memory_forward)) +
           std::abs(static_cast<double>(one.memory_backward_input)) +
           std::abs(static_cast<double>(one.memory_backward_weight));
    takes = takes && one.memory_forward >= 0;
  }
  if (sum > most_of_model)
    throw bad_option("--layers", options.text,
                     "times and memory of all layers must sum to at most 2e11");

  made.stages.resize(static_cast<std::size_t>(where.stages()));
  std::vector<std::int32_t> alive;
  for (int stage = 0; takes && stage < where.stages(); ++stage)
    alive.push_back(std::min(where.microbatches, where.stages() - stage));
  verdict answer = made.how.assign(where, made.stages, made.cost_of(), {limit, alive}, &made.bound);
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
