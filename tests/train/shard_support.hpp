// A stage in shards in one process: all shards' ops in one order, with the sums over them done
// here.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "model/program.hpp"
#include "model/shards.hpp"
#include "model_support.hpp"
#include "stretto/model/op_graph.hpp"

namespace model_test {

using stretto::job_kind;

//! An order of a graph's nodes that respects its edges: 0 the programs' own, otherwise drawn with
//! that key.
inline std::vector<std::int32_t> topological_order(const stretto::op_graph& graph,
                                                   std::uint64_t key) {
  std::vector<std::int32_t> order;
  if (key == 0) {
    order.resize(graph.nodes.size());
    std::iota(order.begin(), order.end(), 0);
    return order;
  }
  train::random_stream numbers(key);
  const stretto::op_neighbours needs(graph, true), waiting(graph, false);
  std::vector<std::size_t> missing;
  std::vector<std::int32_t> ready;
  for (std::int32_t node = 0; node < graph.size(); ++node) {
    missing.push_back(needs.of(node).size());
    if (missing.back() == 0) ready.push_back(node);
  }
  while (!ready.empty()) {
    const std::size_t at = numbers.next() % ready.size();
    std::swap(ready[at], ready.back());
    order.push_back(ready.back());
    ready.pop_back();
    for (const std::int32_t next : waiting.of(order.back()))
      if (--missing[static_cast<std::size_t>(next)] == 0) ready.push_back(next);
  }
  return order;
}

//! All shards of a stage, with the stashes of one micro-batch (of each of its slices) and messages.
template <class Scalar>
struct shard_group {
  train::config model;
  std::vector<train::basic_stage<Scalar>> shards;
  std::vector<std::vector<train::aligned_array<Scalar>>> memory;  // [shard][slice]
  std::vector<std::vector<std::span<Scalar>>> stashes;
  std::vector<train::aligned_array<Scalar>> sums, outputs, input_gradients;  // [shard]
  std::vector<double> losses;

  shard_group(const train::config& of, int first, int last, std::uint64_t seed) : model(of) {
    for (int shard = 0; shard < model.shards; ++shard) {
      shards.emplace_back(model, first, last, seed, shard);
      memory.emplace_back();
      stashes.emplace_back();
      for (int slice = 0; slice < model.slices; ++slice) {
        memory.back().emplace_back(shards.back().stash_scalars());
        stashes.back().push_back(memory.back().back().span());
        poison(stashes.back().back());
      }
      for (auto* each : {&sums, &outputs, &input_gradients}) {
        each->emplace_back(model.activation_scalars());
        poison(each->back().span());
      }
    }
    losses.resize(shards.size());
  }

  //! Runs the ops of these jobs as if they were one, every shard in the same order.
  //! @param received  every shard's input, or gradient of the output; none where it receives none
  void run(const std::vector<job_kind>& jobs, std::uint64_t order_key,
           const std::vector<train::aligned_array<Scalar>>* received, std::size_t slice,
           std::span<const std::uint8_t> tokens, std::span<const std::uint8_t> targets,
           double loss_scale) {
    const auto has = [&](job_kind kind) { return std::ranges::find(jobs, kind) != jobs.end(); };
    const stretto::program_chain chain = train::stage_chain(
        model, shards[0].first(), shards[0].last(),
        {.recompute = has(job_kind::recompute), .split = !has(job_kind::backward)});
    std::vector<stretto::program> programs;
    for (const stretto::program& each : chain.programs)
      if (has(each.kind)) programs.push_back(each);
    const stretto::op_graph graph = stretto::graph_of(chain, programs);
    for (auto& each : sums) poison(each.span());
    losses.assign(shards.size(), 0.0);
    for (const std::int32_t node : topological_order(graph, order_key)) {
      const stretto::op_node& what = graph.nodes[static_cast<std::size_t>(node)];
      const stretto::program& job = programs[static_cast<std::size_t>(what.job)];
      const auto op = static_cast<std::size_t>(what.op - job.first_op);
      run_op(*this, job.kind, op, received, slice, tokens, targets, loss_scale);
    }
  }

  //! Runs an op on all shards, or the sum over them, with the stashes and messages of `with`.
  void run_op(shard_group& with, job_kind kind, std::size_t op,
              const std::vector<train::aligned_array<Scalar>>* received, std::size_t slice,
              std::span<const std::uint8_t> tokens, std::span<const std::uint8_t> targets,
              double loss_scale) {
    if (train::is_sum(shards[0].ops(kind)[op].code)) return with.sum();
    for (std::size_t shard = 0; shard < shards.size(); ++shard) {
      const auto message =
          received == nullptr ? std::span<const Scalar>() : (*received)[shard].span();
      with.losses[shard] += shards[shard].run_op(
          kind, op,
          {.tokens = tokens,
           .targets = targets,
           .input = message,
           .output = with.outputs[shard].span(),
           .output_gradient = message,
           .input_gradient = with.input_gradients[shard].span(),
           .stash = with.stashes[shard][slice],
           .sums = model.shards > 1 ? with.sums[shard].span() : std::span<Scalar>(),
           .loss_scale = loss_scale,
           .earlier = std::span(with.stashes[shard]).first(slice),
           .slice = slice});
    }
  }

  //! Over the shards, from the first to the last.
  void sum() {
    for (std::size_t at = 0; at < sums[0].span().size(); ++at) {
      Scalar total = sums[0].span()[at];
      for (std::size_t shard = 1; shard < sums.size(); ++shard) total += sums[shard].span()[at];
      for (auto& each : sums) each.span()[at] = total;
    }
  }

  //! A layer's gradients (or what `of` gives of a shard) in one piece.
  template <class Of>
  std::vector<Scalar> gathered(int layer, Of&& of) {
    std::vector<Scalar> whole(train::parameter_scalars(train::unsharded(model), layer));
    for (int shard = 0; shard < model.shards; ++shard)
      train::put_shard<Scalar>(model, layer, shard, of(shards[static_cast<std::size_t>(shard)]),
                               whole);
    return whole;
  }
};

}  // namespace model_test
