#include "pipeline/pipeline.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <tuple>
#include <utility>

#include "model/embedding.hpp"
#include "model/layer.hpp"
#include "model/shards.hpp"
#include "pipeline/costs.hpp"
#include "pipeline/plans.hpp"
#include "pipeline/slice_ends.hpp"
#include "pipeline/stage_ops.hpp"
#include "stretto/lowering/groups.hpp"

namespace train {
namespace {

namespace executor = stretto::executor;

learning_settings checked(const learning_settings& learning) {
  learning.rule.check();
  learning.rate.check();
  return learning;
}

// Threads of a process.
constexpr int most_workers = 64;

void check_devices(const pipeline_settings& settings) {
  if (settings.make_transport && settings.transport_capacity > 0)
    throw bad_setting("transport-capacity", std::to_string(settings.transport_capacity),
                      "only the channels of one process on the host have one");
  if (settings.checked && settings.between != nullptr && settings.between->processes() > 1)
    throw bad_setting("checked", "with --transport " + settings.transport,
                      "races are looked for where one process runs all ranks, and there are " +
                          std::to_string(settings.between->processes()));
  if (!settings.graph) return;
  if (!settings.make_graph)
    throw bad_setting("graph", "with --device host", "only a GPU's calls can be recorded");
  if (settings.checked)
    throw bad_setting("graph", "with --checked",
                      "races are looked for in what is issued, and a graph's steps are not");
}

config checked(config model, int slices, const pipeline_settings& settings) {
  check_devices(settings);
  const int shards = settings.tensor_parallel;
  const auto refuse_shards = [&](const std::string& rule) {
    throw bad_setting("tensor-parallel", std::to_string(shards), rule);
  };
  if (shards < 1) refuse_shards("it must be at least 1");
  if (shards > most_workers / settings.ranks && shards > 1)
    refuse_shards("on " + std::to_string(settings.ranks) + " ranks, more than " +
                  std::to_string(most_workers) + " workers");
  const int copies = settings.data_parallel;
  const auto refuse_copies = [&](const std::string& rule) {
    throw bad_setting("data-parallel", std::to_string(copies), rule);
  };
  if (copies < 1) refuse_copies("it must be at least 1");
  if (copies > most_workers / settings.ranks / shards && copies > 1)
    refuse_copies("replicas of " + std::to_string(settings.ranks * shards) +
                  " workers each are more than " + std::to_string(most_workers) + " workers");
  if (model.heads > 0 && model.heads % shards != 0)
    refuse_shards("the heads, " + std::to_string(model.heads) + ", are no multiple of it");
  runs_ops(settings);  // refuses unknown orders
  model.shards = shards;
  model.activations = settings.products;
  model.slices = slices;
  model.slice_ends = slice_ends(model, slices, settings);
  if (model.head_pieces < 1 || model.vocabulary % model.head_pieces != 0)
    throw bad_setting("head-pieces", std::to_string(model.head_pieces),
                      "the vocabulary, " + std::to_string(model.vocabulary) +
                          ", is no multiple of it");
  model.check();
  return model;
}

template <class Stage>
std::unique_ptr<executor::engine> make_engine(const step_plans& plan,
                                              std::span<const std::unique_ptr<Stage>> stages,
                                              const pipeline_settings& settings,
                                              worker_range here, std::vector<int> workers) {
  std::vector<executor::stage*> pointers;
  for (const auto& each : stages) pointers.push_back(each.get());
  executor::options with;
  with.deadline = settings.deadline;
  with.capacity = settings.transport_capacity;
  with.trace_steps = settings.trace_steps;
  with.poison = settings.poison;
  with.checked = settings.checked;
  with.delay = settings.delay;
  if (settings.graph) with.graph = settings.make_graph;
  with.graph_progress = settings.graph_progress;
  if (settings.make_transport) with.wire = settings.make_transport();
  if (settings.make_device)
    with.make_device = [make = settings.make_device, first = here.first,
                        workers = std::move(workers)](const stretto::plan_view& of,
                                                      executor::monitor& watch) {
      return make(workers[config::size(of.rank) - first], of, watch);
    };
  if (here.count() == 0) {
    // The other processes open theirs, and wait for this one.
    executor::monitor none(0);
    with.wire->open({}, none);
    return nullptr;
  }
  return std::make_unique<executor::engine>(plan.plans().subspan(here.first, here.count()),
                                            pointers, std::move(with));
}

// Kernels are measured in fp32 alone.
std::string named_machine(const pipeline_settings& settings) {
  if (settings.machine == nullptr) return {};
  return std::string(settings.machine->name) +
         (settings.products == precision::bf16 ? ", in fp32" : "");
}

}  // namespace

pipeline::pipeline(const config& model, const corpus& text, const pipeline_settings& settings,
                   const learning_settings& learning)
    : sizes_(training_shape(settings)),
      model_(checked(model, sizes_.slices, settings)),
      copies_(settings.data_parallel),
      between_(settings.between),
      deadline_(settings.deadline),
      learning_(checked(learning)),
      text_(text),
      where_(stage_placement(settings)),
      layers_(deal_layers(model_, where_, settings)),
      costs_(settings.machine == nullptr
                 ? product_costs(model_, sizes_, where_, layers_)
                 : machine_costs(model_, sizes_, where_, layers_, *settings.machine)),
      machine_(named_machine(settings)),
      capacity_(settings.transport_capacity),
      trace_steps_(settings.trace_steps),
      poison_(settings.poison) {
  if (copies_ > 1) groups_.summed = stretto::lowering::summed_stages(where_);
  groups_.replicated = stretto::lowering::replicated_stages(where_);
  if (model_.tied && !tied_ranks().empty()) groups_.tied = groups_.summed + groups_.replicated;
  groups_.norms = groups_.summed + groups_.replicated + (groups_.tied >= 0 ? 1 : 0);

  here_ = share_of(settings, between_ == nullptr ? 0 : between_->process());
  build_ranks(settings);
  stretto::plan_request training = request();
  training.recompute = settings.recompute;
  training.offload = settings.offload;
  const auto to_run = [&](std::unique_ptr<stretto::planned> whole, int copies) {
    return std::make_unique<step_plans>(std::move(whole), model_, layers_, settings, copies);
  };
  training_plan_ = to_run(plan_training(settings, costs_.view(), std::move(training)), copies_);
  evaluation_plan_ = to_run(plan_evaluation(settings, costs_.view().of_class(0), request()), 1);
  std::vector<int> all_here(here_.count());
  std::iota(all_here.begin(), all_here.end(), 0);
  training_ = make_engine<training_stage>(*training_plan_, trainers_, settings, here_, all_here);
  pipeline_settings plain = settings;
  plain.trace_steps = 0;
  plain.graph = false;
  // Those that evaluate have numbers of their own.
  worker_range evaluate;
  std::vector<int> which;
  for (std::size_t at = 0; at < here_.last; ++at) {
    if (copy_of(at) != 0) continue;
    ++evaluate.last;
    if (here_.holds(at))
      which.push_back(static_cast<int>(at - here_.first));
    else
      ++evaluate.first;
  }
  evaluation_ = make_engine<evaluation_stage>(*evaluation_plan_, evaluators_, plain, evaluate,
                                              std::move(which));
}

void pipeline::build_ranks(const pipeline_settings& settings) {
  const int evaluation_microbatches = settings.evaluation_microbatches;
  if (evaluation_microbatches < 1)
    throw bad_setting("evaluation-microbatches", std::to_string(evaluation_microbatches),
                      "it must be at least 1");
  evaluated_.resize(config::size(evaluation_microbatches) * config::size(sizes_.slices));
  one_evaluated_.resize(evaluated_.size());
  for (int worker = 0; worker < where_.ranks * workers(); ++worker) {
    const int copy = copy_of(config::size(worker));
    const auto number = config::size(worker);
    const bool here = here_.holds(number);
    maths_.push_back(!here || !settings.make_math
                         ? make_host_math(model_, here ? settings.products : precision::fp32)
                         : settings.make_math(static_cast<int>(number - here_.first), model_,
                                              settings.products));
    const math<float>& by = *maths_.back();
    ranks_.push_back(std::make_unique<rank_model>(
        model_, where_, worker / workers(), layers_, learning_.seed, worker % model_.shards, by,
        std::max(sizes_.microbatches, evaluation_microbatches), here));
    if (!here) continue;
    for (int chunk = 0; settings.warm_up && chunk < where_.chunks; ++chunk)
      settings.warm_up(ranks_.back()->chunk(chunk));
    trainers_.push_back(std::make_unique<training_stage>(
        *ranks_.back(), text_, learning_, sizes_.microbatches, sizes_.slices, groups_,
        replica_number{copy, copies_}));
    if (copy == 0)
      evaluators_.push_back(std::make_unique<evaluation_stage>(
          *ranks_.back(), text_, evaluation_microbatches, sizes_.slices));
  }
}

// As both ranks at the ends of a bidirectional placement have a whole head and the embedding.
std::vector<std::int32_t> pipeline::tied_ranks() const {
  std::vector<std::int32_t> some;
  bool apart = false;
  for (int rank = 0; rank < where_.ranks; ++rank) {
    std::vector<bool> has(config::size(1 + model_.head_pieces));
    for (int chunk = 0; chunk < where_.chunks; ++chunk) {
      const auto& range = layers_[config::size(where_.stage_of(rank, chunk))];
      for (int layer = range.first; layer < range.first + range.count; ++layer)
        if (layer == 0 || model_.piece(layer) >= 0)
          has[config::size(layer == 0 ? 0 : 1 + model_.piece(layer))] = true;
    }
    if (std::ranges::find(has, true) == has.end()) continue;
    some.push_back(rank);
    apart = apart || std::ranges::find(has, false) != has.end();
  }
  return apart ? some : std::vector<std::int32_t>{};
}

// Bytes of every stage's buffers, and the collectives that step_groups describes.
stretto::plan_request pipeline::request() const {
  stretto::plan_request made;
  made.data_parallel = copies_ > 1;
  made.stages.clear();
  for (const auto& range : layers_) {
    const stage& here = holder(range.first);
    made.stages.push_back({.output = static_cast<std::int64_t>(here.message_bytes()),
                           .stash = static_cast<std::int64_t>(here.stash_bytes()),
                           .gradients = static_cast<std::int64_t>(here.state_bytes() / 4)});
  }
  const auto add_group = [&](std::vector<std::int32_t> members, std::size_t elements, bool wide) {
    std::ranges::sort(members);
    made.groups.push_back({.first = static_cast<std::int32_t>(made.members.size()),
                           .count = static_cast<std::int32_t>(members.size()),
                           .elements = static_cast<std::int64_t>(elements),
                           .wide = wide,
                           .shared = wide});
    made.members.insert(made.members.end(), members.begin(), members.end());
  };
  if (groups_.tied >= 0)
    add_group(tied_ranks(), 2 * embedding<float>(model_).table().size, false);
  std::vector<std::int32_t> all(config::size(where_.ranks));
  for (std::size_t rank = 0; rank < all.size(); ++rank) all[rank] = static_cast<int>(rank);
  add_group(all, config::size(model_.layer_count() + copies_ * sizes_.microbatches * sizes_.slices),
            true);
  return made;
}

step_result pipeline::step() {
  for (const auto& each : trainers_) each->prepare(steps_done_ + 1);
  training_->step();
  ++steps_done_;
  return trainers_.front()->result();  // all find the same
}

double pipeline::evaluate() {
  for (const auto& each : evaluators_) each->prepare();
  if (evaluation_) evaluation_->step();
  // Of every part one has found it, and those that other processes run have not.
  const std::span<double> parts = evaluated_, read = one_evaluated_;
  std::ranges::fill(parts, 0.0);
  for (const auto& each : evaluators_) {
    each->read_losses(read);
    for (std::size_t part = 0; part < parts.size(); ++part) parts[part] += read[part];
  }
  if (between_ != nullptr) {  // else nothing is allocated
    const std::string mine(reinterpret_cast<const char*>(parts.data()), parts.size_bytes());
    std::ranges::fill(parts, 0.0);
    for (const std::string& each : exchange("losses", mine)) {
      std::memcpy(read.data(), each.data(), each.size());
      for (std::size_t part = 0; part < parts.size(); ++part) parts[part] += read[part];
    }
  }
  return std::accumulate(parts.begin(), parts.end(), 0.0);
}

namespace {

//! One byte, or more: why there is none.
std::string chosen(const pipeline::choice& choose, std::span<const float> logits) {
  try {
    return {static_cast<char>(choose(logits))};
  } catch (const std::exception& wrong) {
    return std::string("no byte follows: ") + wrong.what();
  }
}

}  // namespace

std::uint8_t pipeline::next(std::span<const std::uint8_t> text, const choice& choose) {
  if (text.empty()) throw std::invalid_argument("the text that is to go on is empty");
  text = text.last(std::min(text.size(), config::size(model_.context)));
  for (const std::uint8_t byte : text)
    if (byte >= model_.vocabulary)
      throw std::invalid_argument("the text that is to go on has the byte " +
                                  std::to_string(byte) + ", the vocabulary ends at " +
                                  std::to_string(model_.vocabulary - 1));
  for (const auto& each : evaluators_) each->prepare(text);
  if (evaluation_) evaluation_->step();
  const std::vector<float> logits = found_logits();
  // Where the loss is found.
  const std::size_t last = worker(where_.rank_of(where_.stages() - 1, 0));
  const std::string mine = here_.holds(last) ? chosen(choose, logits) : std::string();
  std::string told;
  for (const std::string& each : exchange("next byte", mine)) told += each;
  if (told.size() != 1) throw std::runtime_error(told);
  return static_cast<std::uint8_t>(told.front());
}

// Those who hold no piece of the head tell nothing, and the others 0 of what they do not have.
std::vector<float> pipeline::found_logits() const {
  std::vector<float> sum(config::size(model_.vocabulary)), one(sum.size());
  const auto add = [&] {
    for (std::size_t byte = 0; byte < sum.size(); ++byte) sum[byte] += one[byte];
  };
  for (const auto& each : evaluators_) {
    if (!each->tells_logits()) continue;
    each->read_logits(one);
    add();
  }
  if (between_ == nullptr || model_.head_pieces == 1) return sum;
  const std::string mine(reinterpret_cast<const char*>(sum.data()), sum.size() * sizeof(float));
  std::ranges::fill(sum, 0.0F);
  for (const std::string& each : exchange("logits", mine)) {
    std::memcpy(one.data(), each.data(), each.size());
    add();
  }
  return sum;
}

std::vector<layer_sums> pipeline::sums() const {
  std::vector<layer_sums> made;
  for (const auto& range : layers_)
    made.push_back({range.first, range.first + range.count, sum_order(config::size(replicas()))});
  for (layer_sums& of : made)
    for (auto& direction : of.order) direction.resize(config::size(copies_));
  const auto jobs = plan().jobs();
  for (int rank = 0; rank < where_.ranks; ++rank)
    for (const stretto::job& work : jobs.row(rank))
      if (work.kind == stretto::job_kind::backward ||
          work.kind == stretto::job_kind::backward_weight)
        for (int copy = 0; copy < copies_; ++copy)
          made[config::size(work.stage)]
              .order[config::size(where_.direction(work.microbatch))][config::size(copy)]
              .push_back({copy * sizes_.microbatches + work.microbatch, work.slice});
  for (layer_sums& of : made)
    std::erase_if(of.order, [](const auto& direction) { return direction.front().empty(); });
  return made;
}

std::size_t pipeline::parameter_count() const {
  const config one = unsharded(model_);
  std::size_t sum = 0;
  for (int layer = 0; layer < one.layer_count(); ++layer) sum += train::parameter_count(one, layer);
  // A tied head's table is the embedding's.
  return sum - (one.tied ? embedding<float>(one).table().size : 0);
}

stretto::job_table pipeline::measured_costs() const {
  std::vector<const training_stage*> ranks;
  for (int rank = 0; rank < where_.ranks; ++rank) {
    const std::size_t first = worker(rank);
    ranks.push_back(here_.holds(first) ? trainers_[first - here_.first].get() : nullptr);
  }
  stretto::job_table all = train::measured_costs(ranks, sizes_, where_);
  std::vector<stretto::job_cost> theirs(all.entries.size());
  const std::size_t bytes = theirs.size() * sizeof(stretto::job_cost);
  const std::string mine(reinterpret_cast<const char*>(all.entries.data()), bytes);
  for (stretto::job_cost& each : all.entries) each.time = 0;
  for (const std::string& each : exchange("job times", mine)) {
    std::memcpy(theirs.data(), each.data(), bytes);
    for (std::size_t at = 0; at < theirs.size(); ++at) all.entries[at].time += theirs[at].time;
  }
  return all;
}

std::int64_t pipeline::busy_time() const {
  std::int64_t sum = 0;
  for (const auto& each : trainers_) sum += each->clock().sum();
  return sum;
}

void pipeline::forget_times() {
  for (const auto& each : trainers_) each->clock().clear();
}

}  // namespace train
