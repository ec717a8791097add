#include "transformer_layers.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "errors.hpp"
#include "op_ways.hpp"
#include "stretto/memory/liveness.hpp"
#include "stretto/model/transformer/chain.hpp"

namespace stretto::tool {

namespace {

constexpr std::int64_t kib = 1024;  // bytes: of whole models in bytes, sums would be too large

std::int64_t in_kib(std::int64_t bytes) {
  return (bytes + kib - 1) / kib;
}

//! A pipeline with a stage of some part, and that stage.
struct one_stage {
  std::vector<transformer_part> parts;
  int rank = 0;

  const transformer_part& part() const { return parts[static_cast<std::size_t>(rank)]; }
};

//! @param last  it is the last: of pieces of the head the one with the loss
one_stage pipeline_with(const transformer_part& part, bool last, std::int64_t pieces) {
  one_stage made;
  if (!part.embedding) made.parts.push_back({part.first, true});
  const bool piece = part.head_pieces > 0;
  const std::int64_t before = !piece || part.head_norm ? 0 : last ? pieces - 1 : 1;
  if (before > 0) made.parts.push_back({0, false, before, true, part.first});
  made.rank = static_cast<int>(made.parts.size());
  made.parts.push_back(part);
  const std::int64_t behind = pieces - before - part.head_pieces;
  if (behind > 0) made.parts.push_back({0, false, behind, !piece, part.first + part.layers});
  return made;
}

//! "3", "1-30", "5,11..59"; "19 of 1-28" or "others" where they are neither one behind another nor
//! evenly apart.
std::string named(const std::vector<int>& layers, bool others) {
  const std::string first = std::to_string(layers.front()), last = std::to_string(layers.back());
  if (layers.size() == 1) return first;
  const int apart = layers[1] - layers[0];
  for (std::size_t at = 1; at < layers.size(); ++at)
    if (layers[at] - layers[at - 1] != apart)
      return others ? "others" : std::to_string(layers.size()) + " of " + first + "-" + last;
  if (apart == 1) return first + "-" + last;
  return first + "," + std::to_string(layers[1]) + (layers.size() > 2 ? ".." + last : "");
}

//! Of a job's ops in the shortest order that is known.
std::int64_t time_of(const program_chain& chain, std::size_t job, const machine& on) {
  const op_graph graph = graph_of(chain, std::span(chain.programs).subspan(job, 1));
  return ways_of("", graph, chain, on, {.multiprocessors = on.multiprocessors}).best().makespan;
}

//! Of a forward that runs again: what that takes less than the first time, and brings back.
//! @param once  the chain without it, whose forward takes and keeps what `made` says
void add_second_run(const program_chain& once, const recomputation& what, const machine& on,
                    unit_costs& made) {
  const program_chain chain = what.of(once);
  made.recompute_saves = made.forward;
  made.memory_recompute = 0;
  for (std::size_t job = 0; job < chain.programs.size(); ++job)
    if (chain.programs[job].kind == job_kind::recompute)
      made.recompute_saves = std::max(std::int64_t{0}, made.forward - time_of(chain, job, on));
  if (chain.programs.size() == once.programs.size()) return;  // nothing runs again
  std::vector<job_cost> kept(chain.programs.size());
  const verdict answer = memory::measure_chain(chain, {kept.data(), kept.size()});
  if (!answer.ok()) throw bad_input(std::string(memory::explain(answer, chain).view()));
  made.memory_recompute = made.memory_forward - in_kib(kept[0].change);
}

unit_costs costs_of(const transformer& model, const one_stage& at,
                    const transformer_options& of_model, const machine& on,
                    const recomputation& recompute) {
  const placement where{.ranks = static_cast<int>(at.parts.size()), .chunks = 1};
  const transformer_part& part = at.part();
  const auto chain = [&](bool split) {
    const program_chain made =
        transformer_chain(model, where, at.rank, at.parts, split, on, recompute.again());
    return recompute.apart() ? made : recompute.of(made);
  };
  const program_chain halves = chain(true);
  of_model.refuse_huge(halves);
  const program_chain whole = chain(false);
  unit_costs made;
  made.forward = time_of(halves, 0, on);
  made.backward_input = time_of(halves, 1, on);
  made.backward_weight = time_of(halves, 2, on);
  const std::int64_t apart = made.backward_input + made.backward_weight;
  made.whole_saves = std::max(std::int64_t{0}, apart - time_of(whole, 1, on));
  std::vector<job_cost> kept(halves.programs.size());
  const verdict answer = memory::measure_chain(halves, {kept.data(), kept.size()});
  if (!answer.ok()) throw bad_input(std::string(memory::explain(answer, halves).view()));
  made.memory_forward = in_kib(kept[0].change);
  // Between the halves: of what the forward keeps, and of gradients.
  const std::int64_t left = in_kib(kept[0].change + kept[1].change);
  made.memory_backward_input = left - made.memory_forward;
  made.memory_backward_weight = -left;
  if (recompute.apart()) add_second_run(halves, recompute, on, made);
  made.memory_weights = in_kib(model.state_bytes(part));
  const auto across = [&](const network_message& sent) {
    return sent.bytes == 0 ? 0 : on.time({.message = sent.bytes, .far = sent.far});
  };
  if (of_model.replicas > 1) made.reduce_grad = across(model.sum_message(part, of_model.replicas));
  if (model.weight_shards > 1) made.unshard = across(model.gather_message(part));
  made.memory_unshard = in_kib(model.gathered_bytes(part));
  return made;
}

//! Of a copy to the host, or back, of what a forward keeps.
std::optional<std::int64_t> copy_time(std::int64_t kept, const machine& on) {
  if (on.to_host == 0) return std::nullopt;
  return kept == 0 ? 0 : on.launch + (kept * kib + on.to_host - 1) / on.to_host;
}

}  // namespace

int transformer_layers::dealt() const {
  const int pieces = of_model.model.head_pieces;
  return layers + (ends_apart ? 1 : 0) + (ends_apart || pieces > 1 ? pieces : 0);
}

std::int64_t transformer_layers::shared_ends(bool alone) const {
  if (dealt() < 2) return 0;
  const transformer& model = of_model.model;
  const int first = ends_apart ? layers : layers - 1;
  transformer_part last{layers - first, false, 1, true, first};
  const auto bytes = [&] { return alone ? model.weight_bytes(last) : model.state_bytes(last); };
  const std::int64_t apart = bytes();
  last.beside_embedding = true;
  return (apart - bytes()) / kib;
}

std::int64_t transformer_layers::reduce_ends() const {
  if (shared_ends(false) == 0) return 0;
  // In single precision: each of the two sends one half, and the sum of the other.
  const std::int64_t bytes = 4 * of_model.model.table_weights();
  return on.time({.message = bytes, .far = bytes});
}

std::vector<layer_entry> transformer_layers::kinds(std::span<const transformer> slices) const {
  std::vector<layer_entry> all;
  const transformer& model = of_model.model;
  const int pieces = model.head_pieces;
  const int ahead = ends_apart ? 1 : 0;  // what is before the layers
  const auto add = [&](const std::vector<int>& alike, bool others, transformer_part part) {
    if (alike.empty()) return;
    part.first = std::clamp(alike.front() - ahead, 0, layers);
    const one_stage at = pipeline_with(part, alike.back() + 1 == dealt(), pieces);
    for (std::size_t slice = 0; slice < slices.size(); ++slice) {
      const unit_costs costs = costs_of(slices[slice], at, of_model, on, recompute);
      all.push_back({named(alike, others), others ? std::vector<int>{} : alike,
                     slices.size() == 1 ? -1 : static_cast<int>(slice), costs,
                     in_kib(model.weight_bytes(part)), copy_time(costs.memory_forward, on)});
    }
  };
  const auto one = [](int at) { return std::vector<int>{at}; };
  const int last = layers - 1 + ahead;            // of those before the head
  const bool whole = !ends_apart && pieces == 1;  // which is with it
  add(one(0), false,
      {ends_apart ? 0 : 1, true, whole && last == 0 ? 1 : 0, whole && last == 0});
  std::vector<std::pair<layer_kind, std::vector<int>>> middle;
  for (int at = 1; at <= last - (whole ? 1 : 0); ++at) {
    const layer_kind kind = model.kind_of(at - ahead);
    auto found = std::ranges::find(middle, kind, &decltype(middle)::value_type::first);
    if (found == middle.end()) found = middle.insert(found, {kind, {}});
    found->second.push_back(at);
  }
  std::size_t most = 0;
  for (const auto& [kind, alike] : middle) most = std::max(most, alike.size());
  // Of equals the last are the others.
  const auto others = std::ranges::find_if(middle.rbegin(), middle.rend(), [&](const auto& each) {
    return each.second.size() == most;
  });
  for (const auto& each : middle) add(each.second, &each == &*others, {1});
  if (whole) {
    if (last > 0) add(one(last), false, {1, false, 1, true});
    return all;
  }
  const int first_piece = last + 1, last_piece = last + pieces;
  std::vector<int> between;
  for (int piece = first_piece + 1; piece < last_piece; ++piece) between.push_back(piece);
  add(one(first_piece), false, {0, false, 1, true});
  add(between, false, {0, false, 1});
  if (last_piece > first_piece) add(one(last_piece), false, {0, false, 1});
  return all;
}

}  // namespace stretto::tool
