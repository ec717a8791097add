#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "stretto/assignment/even.hpp"
#include "stretto/assignment/partition.hpp"
#include "stretto/assignment/share.hpp"
#include "stretto/base/saturated.hpp"
#include "stretto/base/scratch.hpp"
#include "stretto/model/cost.hpp"

namespace stretto::assignment {

//! What may bound a balanced assignment besides time; every member may be empty.
struct balance_limits {
  std::span<const std::int64_t> rank_memory;  //!< most memory of every rank
  //! Of every stage, how many micro-batches' activations are in memory when it is fullest, as in
  //! p - s for 1F1B.
  std::span<const std::int32_t> alive;
};

//! An assignment with what it is worth.
struct balance_result {
  verdict answer{};
  std::int64_t slowest = 0;  //!< time of the slowest rank
  //! No assignment to these stages has a faster slowest rank; equal to `slowest` when that is
  //! proven to be the least.
  std::int64_t bound = 0;
};

namespace detail {

constexpr std::int64_t size_of(std::int64_t one) {
  return one < 0 ? saturated_negative(one) : one;
}

//! Whether all layers together stay in range, and there is a limit for each rank, and a number of
//! micro-batches for each stage, or none.
constexpr verdict balanced_or_refuse(std::int64_t time, std::int64_t weights,
                                     std::int64_t activations, const placement& where,
                                     const balance_limits& limits) {
  constexpr std::int64_t most = std::int64_t{1} << 60;
  const auto few = [](std::size_t has, int wanted) {
    return has > 0 && has < static_cast<std::size_t>(wanted);
  };
  if (few(limits.rank_memory.size(), where.ranks) || few(limits.alive.size(), where.stages()))
    return refuse(fault::unsupported, reason::costs_do_not_fit);
  int alive = 0;
  for (const std::int32_t one : limits.alive)
    if (one > alive) alive = one;
  // As far as each stage's end is from where it would be evenly, all of these are summed.
  if (time > most / where.stages()) return refuse(fault::unsupported, reason::time_out_of_range);
  if (weights > most || saturated_product(alive, activations) > most)
    return refuse(fault::unsupported, reason::memory_out_of_range);
  return {};
}

//! The search, from a cut in `ends`.
constexpr balance_result improve(const share_problem& problem, std::int32_t* ends) {
  share_search search(problem, ends);
  search.run();
  balance_result made{{}, search.slowest(), search.bound()};
  if (!search.fits()) made.answer = refuse(fault::over_limit, reason::above_limit);
  return made;
}

//! The same problem with memory in place of time, and without limits.
constexpr share_problem least_memory(const share_problem& problem) {
  share_problem made = problem;
  made.cost = problem.held;
  made.caps = nullptr;
  return made;
}

//! One run of the exact cut or the search, whichever the placement needs.
constexpr balance_result cut(const share_problem& problem, std::int32_t* ends) {
  if (problem.groups == problem.stages) {
    balance_result made;
    scratch<std::int64_t> caps(problem.stages);
    for (int stage = 0; stage < problem.stages && problem.caps != nullptr; ++stage)
      caps[stage] = problem.caps[problem.group[stage]];
    made.slowest = made.bound =
        partition(problem.layers, problem.stages, problem.cost, problem.held,
                  problem.caps == nullptr ? nullptr : caps.data(), ends);
    if (made.slowest < 0) made.answer = refuse(fault::over_limit, reason::above_limit);
    return made;
  }
  (void)partition(problem.layers, problem.stages, problem.cost, {}, nullptr, ends);
  if (problem.caps == nullptr) return improve(problem, ends);
  // Limits leave the search in holes. It begins where ranks are fast; and where they hold little,
  // under limits that widen step by step.
  balance_result made = improve(problem, ends);
  std::int64_t bound = made.bound;
  scratch<std::int32_t> others(problem.stages);
  scratch<std::int64_t> caps(problem.groups);
  const share_problem least = least_memory(problem);
  (void)partition(problem.layers, problem.stages, least.cost, {}, nullptr, others.data());
  const std::int64_t enough = improve(least, others.data()).slowest;
  share_problem narrowed = problem;
  narrowed.caps = caps.data();
  constexpr int steps = 8;
  for (int left = steps; left >= 0; --left) {
    for (int group = 0; group < problem.groups; ++group) {
      const std::int64_t room = problem.caps[group] - enough;
      caps[group] = problem.caps[group] - (room > 0 ? room / steps * left : 0);
    }
    const balance_result other = improve(narrowed, others.data());
    // What no cut within narrower limits does, one within these may.
    if (left == 0 && other.bound > bound) bound = other.bound;
    if (!other.answer.ok() || (made.answer.ok() && other.slowest >= made.slowest)) continue;
    made = other;
    for (int stage = 0; stage < problem.stages; ++stage) ends[stage] = others[stage];
  }
  made.bound = bound;
  return made;
}

//! Whether the slowest group of dealt stages is no slower than that, and all keep to the caps.
constexpr bool as_good(const share_problem& problem, std::span<const layer_range> stages,
                       std::int64_t slowest) {
  scratch<std::int64_t> cost(problem.groups);
  scratch<std::int64_t> held(problem.groups);
  for (int stage = 0; stage < problem.stages; ++stage) {
    const layer_range dealt = stages[static_cast<std::size_t>(stage)];
    const int end = dealt.first + dealt.count;
    const int group = problem.group[stage];
    cost[group] += problem.cost.of(stage, dealt.first, end);
    if (problem.caps != nullptr) held[group] += problem.held.of(stage, dealt.first, end);
    if (cost[group] > slowest) return false;
    if (problem.caps != nullptr && held[group] > problem.caps[group]) return false;
  }
  return true;
}

}  // namespace detail

//! Deals `layers` layers to the stages by what they take: the time of the slowest rank is made as
//! small as it can be, which is the forwards and backwards of one micro-batch through all layers
//! that the rank holds; a pipeline that is full is as slow as that. Embedding and head are layers
//! like others. Where a rank is one stage this is the exact least (assignment/partition.hpp). Where
//! it holds several (chunks, or a stage of each direction) it is searched for and nearly always
//! proven (assignment/share.hpp); `bound` tells. Of equals, the layers dealt evenly are
//! taken if they are one, else a cut with faster stages or evener boundaries.
//!
//! With `limits`, a rank's memory is that of the weights of its layers and of the activations alive
//! in each of its stages (memory_forward), no more than its limit.
//! @param costs times and memory are not negative
//! @return fault::misassigned for fewer layers than stages (reason::empty_stage) and for an odd
//!         number of ranks in two directions (reason::ranks_odd); fault::over_limit
//!         when no cut keeps to the limits (or none was found), `amount` being a limit that is
//!         enough for every rank, and the least if a rank is one stage; fault::unsupported for sums
//!         that are out of range (times' above 2^60 over the number of stages), and for limits that
//!         are not one a rank, or one a stage
template <layer_costs Costs>
constexpr balance_result deal_balanced(int layers, const placement& where,
                                       std::span<layer_range> stages, const Costs& costs,
                                       const balance_limits& limits = {}) {
  const int count = where.stages();
  if (verdict answer = deal_evenly(layers, where, stages); !answer.ok()) return {answer, 0, 0};
  scratch<std::int64_t> time(layers + 1);
  scratch<std::int64_t> weights(layers + 1);
  scratch<std::int64_t> activations(layers + 1);
  std::int64_t most_held[2] = {};  // weights and activations, were none below 0
  for (int layer = 0; layer < layers; ++layer) {
    const unit_costs one = costs(layer);
    if (one.both_ways() < 0) return {refuse(fault::unsupported, reason::time_out_of_range), 0, 0};
    most_held[0] = saturated_sum(most_held[0], detail::size_of(one.memory_weights));
    most_held[1] = saturated_sum(most_held[1], detail::size_of(one.memory_forward));
    time[layer + 1] = saturated_sum(time[layer], one.both_ways());
    weights[layer + 1] = saturated_sum(weights[layer], one.memory_weights);
    activations[layer + 1] = saturated_sum(activations[layer], one.memory_forward);
  }
  if (const verdict answer =
          detail::balanced_or_refuse(time[layers], most_held[0], most_held[1], where, limits);
      !answer.ok())
    return {answer, 0, 0};

  // The stages of a rank; of the two ranks that hold the same two stages, one.
  const bool both_ways = where.kind == placement_kind::bidirectional;
  if (both_ways && where.ranks % 2 != 0) return {misassigned(reason::ranks_odd), 0, 0};
  const int groups = both_ways ? where.ranks / 2 : where.ranks;
  const auto group_of = [&](int rank) { return rank < groups ? rank : where.ranks - 1 - rank; };
  scratch<std::int32_t> group(count);
  scratch<std::int32_t> alive(count);
  for (int stage = 0; stage < count; ++stage) {
    group[stage] = group_of(where.rank_of(stage, 0));
    alive[stage] = limits.alive.empty() ? 0 : limits.alive[static_cast<std::size_t>(stage)];
  }
  share_problem problem{.layers = layers,
                        .stages = count,
                        .groups = groups,
                        .cost = {time.data()},
                        .held = {weights.data(), activations.data(), alive.data()},
                        .group = group.data()};
  scratch<std::int64_t> caps(groups);
  if (!limits.rank_memory.empty()) {
    for (int at = 0; at < groups; ++at) caps[at] = unlimited;
    for (int rank = 0; rank < where.ranks; ++rank) {
      const int at = group_of(rank);
      const std::int64_t limit = limits.rank_memory[static_cast<std::size_t>(rank)];
      if (limit < caps[at]) caps[at] = limit;
    }
    problem.caps = caps.data();
  }

  scratch<std::int32_t> ends(count);
  balance_result made = detail::cut(problem, ends.data());
  if (!made.answer.ok()) {
    for (int at = 0; at < groups; ++at)
      if (at == 0 || caps[at] < made.answer.limit) made.answer.limit = caps[at];
    made.answer.amount = detail::cut(detail::least_memory(problem), ends.data()).slowest;
    return made;
  }
  if (detail::as_good(problem, stages, made.slowest)) return made;
  int begin = 0;
  for (int stage = 0; stage < count; ++stage) {
    stages[static_cast<std::size_t>(stage)] = {begin, ends[stage] - begin};
    begin = ends[stage];
  }
  return made;
}

//! By the costs of a model:
//! - `Model::layers`: how many, embedding and head included where they are layers.
//! - `Model{}.layer(i)`: a unit_costs.
//! - `Model::limit` (optional): most memory of a rank.
//! - `Model{}.alive(where, stage)` (optional): see balance_limits.
template <class Model>
struct balanced {
  static constexpr std::string_view name = "balanced";

  constexpr int layers() const { return Model::layers; }
  constexpr verdict assign(const placement& where, std::span<layer_range> stages) const {
    scratch<std::int64_t> memory(where.ranks);
    scratch<std::int32_t> alive(where.stages());
    balance_limits limits;
    if constexpr (requires { Model::limit; }) {
      for (int rank = 0; rank < where.ranks; ++rank) memory[rank] = Model::limit;
      limits.rank_memory = {memory.data(), static_cast<std::size_t>(where.ranks)};
    }
    if constexpr (requires { Model{}.alive(where, 0); }) {
      for (int stage = 0; stage < where.stages(); ++stage)
        alive[stage] = Model{}.alive(where, stage);
      limits.alive = {alive.data(), static_cast<std::size_t>(where.stages())};
    }
    return deal_balanced(
               Model::layers, where, stages, [](int layer) { return Model{}.layer(layer); }, limits)
        .answer;
  }
};

}  // namespace stretto::assignment
