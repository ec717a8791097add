#include "pipeline/stage_ops.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "model/op.hpp"
#include "model/program.hpp"
#include "stretto/lowering/streams/input_gradient_first.hpp"
#include "stretto/lowering/streams/look_ahead.hpp"
#include "stretto/model/stream_type.hpp"

namespace train {
namespace {

using stretto::job_kind;

constexpr std::string_view whole_jobs = "whole", look_ahead_order = "look_ahead",
                           pieces_order = "in_pieces";
constexpr std::array<std::string_view, 4> orders = {"program", "input_gradient_first",
                                                    look_ahead_order, pieces_order};

// Looking ahead takes the square of a job's ops, and looking for what to cut tens of times that.
constexpr std::size_t most_ops = 1000, most_ops_to_cut = 300;

// What in_pieces tries.
constexpr int most_tried = 8;

std::string order_of(const pipeline_settings& settings) {
  if (!settings.ops.empty()) return settings.ops;
  return std::string(settings.tensor_parallel > 1 ? look_ahead_order : whole_jobs);
}

//! Adds the chain's program of that kind, with buffers of its own: what lies in buffers of the plan
//! between jobs is not what ops on other streams share.
void add_program(const stretto::program_chain& from, job_kind kind, std::uint8_t stream,
                 stretto::program_chain& to) {
  const auto base = static_cast<std::int32_t>(to.buffers.size());
  for (stretto::program_buffer each : from.buffers) {
    each.storage += base;
    to.buffers.push_back(each);
  }
  for (const stretto::program& job : from.programs) {
    if (job.kind != kind) continue;
    to.begin(kind, job.chunk);
    for (const stretto::op& each : from.ops_of(job)) {
      std::vector<stretto::op_use> uses(from.uses_of(each).begin(), from.uses_of(each).end());
      for (stretto::op_use& use : uses) use.buffer += base;
      stretto::op_form form = each;
      form.collective = form.stream == static_cast<int>(stretto::stream_type::tensor_parallel);
      if (form.collective) form.stream = stream;
      form.holds = 0;  // who computes beside a sum has no fewer multiprocessors
      to.add(each.name, uses, form);
    }
  }
}

}  // namespace

std::string op_orders() {
  std::string names;
  for (const std::string_view each : orders)
    names += (names.empty() ? "" : ", ") + std::string(each);
  return names;
}

int most_pieces(const pipeline_settings& settings) {
  if (order_of(settings) != pieces_order) return 1;
  return settings.pieces > 0 ? settings.pieces : most_tried;
}

bool runs_ops(const pipeline_settings& settings) {
  const std::string name = order_of(settings);
  const bool whole = name == whole_jobs;
  if (!whole && std::ranges::find(orders, name) == orders.end())
    throw bad_setting("ops", name,
                      "no such order; there are " + std::string(whole_jobs) + ", " + op_orders());
  if (settings.pieces != 0 && (settings.pieces < 1 || name != pieces_order))
    throw bad_setting("pieces", std::to_string(settings.pieces),
                      settings.pieces < 1
                          ? "it must be at least 1"
                          : "ops are cut in the order in_pieces alone, and --ops is " + name);
  if (whole && settings.tensor_parallel > 1)
    throw bad_setting("ops", name,
                      "the sums of --tensor-parallel " + std::to_string(settings.tensor_parallel) +
                          " lie between the ops of a job");
  return !whole;
}

stage_ops::stage_ops(const config& model, const stretto::placement& where,
                     std::vector<stretto::assignment::layer_range> layers,
                     const pipeline_settings& settings, int stream)
    : model_(model),
      where_(where),
      layers_(std::move(layers)),
      order_(order_of(settings)),
      stream_(static_cast<std::uint8_t>(stream)),
      pieces_(order_ == pieces_order ? settings.pieces : 0),
      on_(order_ != pieces_order        ? nullptr
          : settings.machine != nullptr ? settings.machine
          : settings.make_device        ? stretto::find_machine("h100")
                                        : stretto::find_machine("host")) {
  if (config::size(pieces_) > model_.rows())
    throw bad_setting("pieces", std::to_string(pieces_),
                      "a piece of an op is one row at least, and a micro-batch" +
                          std::string(model_.slices > 1 ? "'s slice" : "") + " has " +
                          std::to_string(model_.rows()));
  const bool searches = order_ == pieces_order && pieces_ == 0;
  const std::size_t most = searches ? most_ops_to_cut : most_ops;
  for (const auto& range : layers_) {
    const std::size_t ops =
        job_ops(model_, range.first, range.first + range.count, job_kind::backward).size() *
        config::size(std::max(1, pieces_));
    if (ops > most)
      throw bad_setting("ops", order_, "a backward through " + std::to_string(range.count) +
                                           " layers has " + std::to_string(ops) +
                                           (pieces_ > 1 ? " pieces of ops" : " ops") +
                                           ", more than " + std::to_string(most));
  }
}

stretto::program_chain stage_ops::programs(int rank) const {
  chain_ = {};
  stretto::program_chain& made = chain_;
  for (int chunk = 0; chunk < where_.chunks; ++chunk) {
    const auto& range = layers_[config::size(where_.stage_of(rank, chunk))];
    const auto chain = [&](bool split) {
      return stage_chain(model_, range.first, range.first + range.count,
                         {.recompute = true, .split = split, .on = on_, .chunk = chunk});
    };
    const stretto::program_chain whole = chain(false), halves = chain(true);
    for (const job_kind kind : {job_kind::forward, job_kind::recompute, job_kind::backward})
      add_program(whole, kind, stream_, made);
    for (const job_kind kind : {job_kind::backward_input, job_kind::backward_weight})
      add_program(halves, kind, stream_, made);
  }
  return made;
}

const stretto::overlap::cut_order& stage_ops::cut(const stretto::op_graph& graph) const {
  // Of what a chain says of nodes, cutting asks for names alone, and alike chunks have the same.
  const auto like = [&](const auto& known) {
    return known.first.edges == graph.edges &&
           std::ranges::equal(known.first.nodes, graph.nodes, [](auto one, const auto& other) {
             one.op = other.op;
             return one == other;
           });
  };
  if (const auto found = std::ranges::find_if(known_, like); found != known_.end())
    return found->second;
  const stretto::overlap::piece_costs costs{on_->launch, on_->launch + on_->latency};
  known_.emplace_back(graph, pieces_ > 0
                                 ? stretto::overlap::in_equal_pieces(
                                       graph, static_cast<std::int16_t>(pieces_), costs)
                                 : stretto::overlap::in_pieces(graph, chain_, costs));
  return known_.back().second;
}

std::vector<std::int32_t> stage_ops::order(stretto::op_graph& graph) const {
  if (order_ == orders[0]) return stretto::overlap::program_order(graph);
  if (order_ == orders[1]) return stretto::overlap::input_gradient_first(graph);
  if (order_ == look_ahead_order) return stretto::overlap::look_ahead(graph).nodes;
  const stretto::overlap::cut_order& found = cut(graph);
  // The nodes are another chunk's maybe: its ops, in the same places, are this one's.
  stretto::op_graph made = found.graph;
  std::size_t of = 0;
  for (stretto::op_node& node : made.nodes) {
    node.op = graph.nodes[of].op;
    if (node.piece + 1 == node.pieces) ++of;
  }
  graph = std::move(made);
  return found.order.nodes;
}

}  // namespace train
