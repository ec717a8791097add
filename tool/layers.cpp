#include "layers.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "errors.hpp"
#include "layer_file.hpp"
#include "numbers.hpp"

namespace stretto::tool {

namespace {

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

//! A layer of which nothing else is said keeps nothing when its forward runs a second time.
void bring_back_what_is_kept(dealt_layers& made) {
  const auto in = [&](std::vector<unit_costs>& layers) {
    for (std::size_t at = 0; at < layers.size(); ++at)
      if (!made.brings_back[at])
        layers[at].memory_recompute = std::max(std::int64_t{0}, layers[at].memory_forward);
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
    if (made.ends_on(where, rank).both()) need -= made.shared_ends;
    const std::int64_t most = limit[static_cast<std::size_t>(rank)];
    if (need > most)
      throw bad_input("--limit " + std::to_string(most) + ": with --layers " + options.text +
                      " rank " + std::to_string(rank) + " needs " + std::to_string(need));
  }
}

//! With how many chunks the ranks would have as many stages as are told; empty: with none.
std::string chunks_for(const verdict& answer, const placement& where) {
  const bool counts = answer.why == reason::counts_not_per_stage;
  if (!counts || where.kind == placement_kind::bidirectional || answer.amount % where.ranks != 0)
    return {};
  return "; so many are stages of --chunks " + std::to_string(answer.amount / where.ranks);
}

}  // namespace

dealt_layers::end_chunks dealt_layers::ends_on(const placement& where, int rank) const {
  end_chunks found;
  for (int chunk = 0; chunk < where.chunks; ++chunk) {
    const int stage = where.stage_of(rank, chunk);
    if (stage < 0) continue;
    const layer_range& held = stages[static_cast<std::size_t>(stage)];
    if (held.count == 0) continue;
    if (held.first == 0) found.first = chunk;
    if (held.first + held.count == static_cast<std::int32_t>(costs.size())) found.last = chunk;
  }
  return found;
}

void layer_options::add(CLI::App& command) {
  command.add_option("--layers", text,
                     "The model by layers, of which each has the costs given (and the first and "
                     "the last those of --embedding and --head): how many on every rank, as in "
                     "9,8,8,7; even:N; balanced:N; rank_list:0,0,1,1; table:3,2,2,1 (of every "
                     "stage; sparse_table: where some are empty); or Megatron-LM's layout, as in "
                     "Et*3|(tt|)*29,m|L");
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
  made.brings_back.assign(made.costs.size(), false);
  read_times("--embedding", options.embedding, made.costs.front());
  read_times("--head", options.head, made.costs.back());
  if (!options.file.empty()) read_layer_file(options, made);
  bring_back_what_is_kept(made);
  if (options.evenly) made.how = assignment::described("even:" + std::to_string(made.how.layers()));
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
    if (one.recompute_saves > one.forward)
      throw bad_input("--layer-costs " + options.file + ": a forward of layer " +
                      std::to_string(&one - made.costs.data()) + " saves " +
                      std::to_string(one.recompute_saves) + " when it runs again, and takes " +
                      std::to_string(one.forward));
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
  const auto cost_of = [&](int at) {
    unit_costs one = made.costs[static_cast<std::size_t>(at)];
    if (options.gathered >= where.chunks) one.memory_weights += one.memory_unshard;
    if (at + 1 == made.how.layers() && where.ends_meet()) one.memory_weights -= made.shared_ends;
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
    throw layers_refused("--layers " + options.text + ": " + made.how.explain(answer, where) +
                             chunks_for(answer, where),
                         answer);
  if (strict && made.how.name() != "balanced") refuse_above(options, made, where, limit, alive);
  return made;
}

}  // namespace stretto::tool
